//! Reads a request's JSON body, within limits.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use crate::error::Failure;

/// As large as a WebSocket message may be.
const BODY_BYTES_MAX: usize = crate::socket::MESSAGE_BYTES_MAX;
/// A client that needs longer only occupies a connection.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// A body of type `T`; an invalid body is reported by field.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let bytes = read(request.into_body()).await?;
        let mut deserializer = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            let field = if path == "." { "" } else { &path };
            Failure::invalid(field, error.into_inner().to_string())
        })?;
        deserializer.end().map_err(|error| Failure::invalid("", error.to_string()))?;
        Ok(Self(value))
    }
}

async fn read(body: Body) -> Result<axum::body::Bytes, Failure> {
    match tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            Err(Failure::invalid("", format!("the body is broken off or longer than {BODY_BYTES_MAX} bytes"))
                .with_status(StatusCode::PAYLOAD_TOO_LARGE))
        }
        Err(_) => {
            Err(Failure::invalid("", "the body took too long to arrive").with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}
