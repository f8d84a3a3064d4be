//! One request, one answer.

use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use protocol::http::ErrorBody;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Server;
use crate::commands::Failure;

/// More than any answer of the API; a list of a hundred thousand sessions is shorter.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An answer that may be an error.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    body: Vec<u8>,
}

impl Server {
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.read(&self.exchange(Method::GET, path, None, self.token.as_deref()).await?)
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        let body = serde_json::to_string(body).map_err(|error| self.lost(&error))?;
        self.read(&self.exchange(Method::POST, path, Some(body), self.token.as_deref()).await?)
    }

    /// Gets a file and hands on its parts as they come. An answer that breaks off is a failure.
    pub(crate) async fn download(
        &self,
        path: &str,
        mut on_part: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let request = self.request(Method::GET, path, None, self.token.as_deref())?;
        let stream = TokioIo::new(self.connect().await?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|error| self.lost(&error))?;
        let exchange = async move {
            let (head, mut body) = sender.send_request(request).await.map_err(|error| self.lost(&error))?.into_parts();
            if !head.status.is_success() {
                let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| self.lost(&error))?;
                let body = body.to_bytes().to_vec();
                let answer = Answer { status: head.status, content_type: String::new(), body };
                return self.read::<serde_json::Value>(&answer).map(drop);
            }
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| self.lost(&format!("the file is not complete: {error}")))?;
                if let Some(part) = frame.data_ref() {
                    on_part(part)?;
                }
            }
            Ok(())
        };
        let (done, _) = tokio::join!(exchange, connection);
        done
    }

    /// A page, as a browser that holds this secret asks for it.
    pub(crate) async fn page(&self, token: Option<&str>) -> Result<Answer, Failure> {
        self.exchange(Method::GET, "/", None, token).await
    }

    fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, Failure> {
        if answer.status == StatusCode::FORBIDDEN {
            return Err(self.refused());
        }
        if !answer.status.is_success() {
            return Err(match serde_json::from_slice::<ErrorBody>(&answer.body) {
                Ok(body) => body.error.into(),
                Err(_) => self.lost(&format!("it answered with status {}", answer.status)),
            });
        }
        serde_json::from_slice(&answer.body).map_err(|error| self.lost(&format!("its answer cannot be read: {error}")))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        token: Option<&str>,
    ) -> Result<Request<String>, Failure> {
        let accept = if path.starts_with("/api/") { "application/json" } else { "text/html" };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.authority())
            .header(ACCEPT, accept)
            .header(CONNECTION, "close");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(body.unwrap_or_default()).map_err(|error| self.lost(&error))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        token: Option<&str>,
    ) -> Result<Answer, Failure> {
        let request = self.request(method, path, body, token)?;
        let stream = TokioIo::new(self.connect().await?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|error| self.lost(&error))?;
        let exchange = async move {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
            let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Answer {
                status: head.status,
                content_type: content_type.to_owned(),
                body: body.to_vec(),
            })
        };
        // The connection has to be driven for the request to proceed. Its end says no more than the request's result.
        let (answer, _) = tokio::join!(exchange, connection);
        answer.map_err(|error| self.lost(&error))
    }
}
