//! The style of an exported file: the page's own colours and the page's own look of rendered content, in the theme that
//! the reader's system prefers.

/// The page's tokens, one set per theme.
const THEME: &str = include_str!("../../../../web/shared/theme.css");
/// The look of rendered markdown, code, diffs and terminals.
const CONTENT: &str = include_str!("../../../../web/shared/content.css");
/// The look of what only an exported file has.
const LAYOUT: &str = include_str!("layout.css");

/// Light, dark where the reader prefers it, and light on paper.
pub(crate) fn sheet() -> String {
    let fonts = rules(":root {").unwrap_or_default();
    let light = rules(":root[data-theme=\"light\"] {").unwrap_or_default();
    let dark = rules(":root[data-theme=\"dark\"] {").unwrap_or_default();
    format!(
        "@layer reset, base, components;\n:root {{{fonts}{light}}}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root {{{dark}}} }}\n{LAYOUT}{CONTENT}"
    )
}

/// What stands between the braces that follow a selector of the theme.
fn rules(selector: &str) -> Option<&'static str> {
    let (_, after) = THEME.split_once(selector)?;
    Some(after.split_once('}')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_themes_of_the_page_are_found() {
        assert!(rules(":root {").unwrap().contains("--font-mono"));
        let [light, dark] = ["light", "dark"].map(|theme| rules(&format!(":root[data-theme=\"{theme}\"] {{")).unwrap());
        assert!(light.contains("color-scheme: light") && light.contains("--syn-kw"));
        assert!(dark.contains("color-scheme: dark") && dark.contains("--syn-kw"));
        let sheet = sheet();
        assert!(!sheet.contains("</") && !sheet.contains("url(") && !sheet.contains("@import"), "it is self-contained");
        for token in sheet.split("var(").skip(1).filter_map(|rest| rest.split_once(')')).map(|(token, _)| token) {
            assert!(sheet.contains(&format!("{token}:")), "{token} has no value");
        }
    }
}
