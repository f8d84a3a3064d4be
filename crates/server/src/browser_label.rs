//! A short name of a browser for a list: "Firefox on Linux".
//!
//! The label consists only of names from these tables, so it is short and harmless whatever the headers contain.

use axum::http::{HeaderMap, header};

/// In this order: most of them also claim to be the later ones.
const BROWSERS: [(&str, &str); 11] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Vivaldi/", "Vivaldi"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chromium/", "Chromium"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];
/// Brands that browsers of one engine reveal only in this header. All of them also list Chromium.
const BRANDS: [(&str, &str); 6] = [
    ("Microsoft Edge", "Edge"),
    ("Opera", "Opera"),
    ("Brave", "Brave"),
    ("Vivaldi", "Vivaldi"),
    ("Google Chrome", "Chrome"),
    ("Chromium", "Chromium"),
];
const SYSTEMS: [(&str, &str); 8] = [
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("FreeBSD", "FreeBSD"),
    ("Linux", "Linux"),
];

pub(crate) fn of(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (agent, brands) = (text(header::USER_AGENT.as_str()), text("sec-ch-ua"));
    let browser = first(&BRANDS, brands).or_else(|| first(&BROWSERS, agent)).unwrap_or("Unknown browser");
    match first(&SYSTEMS, agent) {
        Some(system) => format!("{browser} on {system}"),
        None => browser.to_owned(),
    }
}

fn first(table: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    table.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(agent: &'static str, brands: &'static str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, agent.parse().unwrap());
        headers.insert("sec-ch-ua", brands.parse().unwrap());
        of(&headers)
    }

    #[test]
    fn browsers_are_known_by_name_and_system() {
        let chrome =
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
        assert_eq!(label(chrome, ""), "Chrome on Linux");
        assert_eq!(label(chrome, r#""Chromium";v="140", "Not=A?Brand";v="24""#), "Chromium on Linux");
        assert_eq!(label(chrome, r#""Chromium";v="140", "Google Chrome";v="140""#), "Chrome on Linux");
        let firefox = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:143.0) Gecko/20100101 Firefox/143.0";
        assert_eq!(label(firefox, ""), "Firefox on macOS");
        let phone =
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile/1 Safari/604.1";
        assert_eq!(label(phone, ""), "Safari on iPhone");
        assert_eq!(label("curl/8.5.0", ""), "curl");
    }

    #[test]
    fn no_text_of_a_request_is_repeated() {
        assert_eq!(label("<script>alert(1)</script>", "\"><img src=x>"), "Unknown browser");
        assert_eq!(of(&HeaderMap::new()), "Unknown browser");
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, axum::http::HeaderValue::from_bytes(&[0xff; 5000]).unwrap());
        assert_eq!(of(&headers), "Unknown browser");
    }
}
