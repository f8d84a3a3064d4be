//! What markdown looks like.

fn check(markdown: &str, expected: &[&str]) {
    let blocks = rendering::markdown(markdown);
    let shown: Vec<&str> = blocks.iter().map(|block| &**block).collect();
    assert_eq!(shown, expected, "{markdown:?}");
}

const LINK: &str = "target=\"_blank\" rel=\"noopener noreferrer nofollow\"";
const PLACE: &str = "role=\"link\" tabindex=\"0\" rel=\"noopener noreferrer nofollow\"";

#[test]
fn one_string_per_top_level_block() {
    check("# One\ntwo\nthree\n\n---\n", &["<h1>One</h1>", "<p>two<br>three</p>", "<hr>"]);
}

#[test]
fn code_has_a_caption_and_colours() {
    check(
        "```rust\nlet x = 1;\n```",
        &[
            "<figure class=\"code\"><figcaption>Rust</figcaption><pre><code><i class=\"k\">let</i> x <i>= </i><i class=\"n\">1</i><i>;</i>\n</code></pre></figure>",
        ],
    );
    check(
        "```ts src/a.ts\n1\n```",
        &[
            "<figure class=\"code\"><figcaption>TypeScript<span class=\"src\">src/a.ts</span></figcaption><pre><code><i class=\"n\">1</i>\n</code></pre></figure>",
        ],
    );
    check("    a\n", &["<figure class=\"code\"><figcaption></figcaption><pre><code>a\n</code></pre></figure>"]);
}

#[test]
fn half_a_closing_fence_is_not_shown() {
    let open = "<figure class=\"code\"><figcaption></figcaption><pre><code>a\n</code></pre></figure>";
    for text in ["```\na\n", "```\na\n`", "```\na\n``", "```\na\n```", "```\na\n```\n"] {
        check(text, &[open]);
    }
}

#[test]
fn tables_tasks_strikes_and_alerts() {
    check(
        "| a | b |\n|:-:|--:|\n| 1 | ~~2~~ |",
        &[
            "<div class=\"table\"><table><thead><tr><th class=\"center\">a</th><th class=\"right\">b</th></tr></thead><tbody><tr><td class=\"center\">1</td><td class=\"right\"><del>2</del></td></tr></tbody></table></div>",
        ],
    );
    check(
        "- [x] a\n- [ ] b",
        &[
            "<ul><li class=\"task done\"><i class=\"box\" role=\"img\" aria-label=\"done\"></i>a</li><li class=\"task\"><i class=\"box\" role=\"img\" aria-label=\"to do\"></i>b</li></ul>",
        ],
    );
    check(
        "> [!WARNING]\n> hot",
        &["<blockquote class=\"alert warning\"><p class=\"alert-title\">Warning</p><p>hot</p></blockquote>"],
    );
    check("3. c", &["<ol start=\"3\"><li>c</li></ol>"]);
}

#[test]
fn footnotes_stand_where_they_are_defined() {
    check(
        "a[^n]\n\n[^n]: note",
        &[
            "<p>a<sup class=\"note\" data-note=\"n\">n</sup></p>",
            "<div class=\"footnote\" data-note=\"n\"><sup>n</sup><p>note</p></div>",
        ],
    );
}

#[test]
fn links_open_a_new_window_and_pictures_are_links() {
    check("[a](https://x.example \"t\")", &[&format!("<p><a href=\"https://x.example\" title=\"t\" {LINK}>a</a></p>")]);
    check(
        "see https://x.example/a_b_c.",
        &[&format!("<p>see <a href=\"https://x.example/a_b_c\" {LINK}>https://x.example/a_b_c</a>.</p>")],
    );
    check(
        "![alt](https://x.example/i.png)",
        &[&format!("<p><a class=\"image\" href=\"https://x.example/i.png\" {LINK}>alt</a></p>")],
    );
    check("[x](javascript:alert(1))", &["<p>x</p>"]);
}

#[test]
fn places_in_files_are_links_for_the_page() {
    check(
        "in src/a.rs:12 and",
        &[&format!("<p>in <a class=\"ref\" data-path=\"src/a.rs\" data-line=\"12\" {PLACE}>src/a.rs:12</a> and</p>")],
    );
    check(
        "`src/a.rs:12`",
        &[&format!(
            "<p><code><a class=\"ref\" data-path=\"src/a.rs\" data-line=\"12\" {PLACE}>src/a.rs:12</a></code></p>"
        )],
    );
    check(
        "[a](src/a.rs#L3)",
        &[&format!("<p><a class=\"ref\" data-path=\"src/a.rs\" data-line=\"3\" {PLACE}>a</a></p>")],
    );
    check("at 12:30 on localhost:3000", &["<p>at 12:30 on localhost:3000</p>"]);
}

#[test]
fn raw_html_is_text() {
    check("<div onclick=x>\nhi\n</div>", &["<p class=\"html\">&lt;div onclick=x&gt;\nhi\n&lt;/div&gt;</p>"]);
    check("a <b>b</b> c<br>d", &["<p>a &lt;b&gt;b&lt;/b&gt; c<br>d</p>"]);
}

#[test]
fn nesting_without_end_is_shown_flat() {
    let blocks = rendering::markdown(&format!("{} deep", ">".repeat(5_000)));
    assert!(blocks.concat().matches("<blockquote>").count() <= 40);
    assert!(blocks.concat().contains("deep"));
}

/// One line each, of which something must have a colour.
const LANGUAGES: &[(&str, &str)] = &[
    ("rust", "fn main() { let x = 1; }"),
    ("typescript", "const x: number = 1;"),
    ("javascript", "const x = \"a\";"),
    ("jsx", "const x = <p className=\"a\">1</p>;"),
    ("tsx", "const x: number = 1;"),
    ("python", "def main(): return 1"),
    ("go", "func main() { return }"),
    ("java", "public class A { int x = 1; }"),
    ("c", "int main(void) { return 0; }"),
    ("c++", "int main() { return 0; }"),
    ("c#", "public class A { int x = 1; }"),
    ("ruby", "def main; 1; end"),
    ("php", "<?php function main() { return 1; }"),
    ("swift", "func main() { let x = 1 }"),
    ("kotlin", "fun main() { val x = 1 }"),
    ("shell", "if true; then echo \"a\"; fi"),
    ("powershell", "if ($x -eq 1) { Write-Host \"a\" }"),
    ("sql", "SELECT a FROM b WHERE c = 1;"),
    ("html", "<p class=\"a\">b</p>"),
    ("css", "p { color: red; }"),
    ("json", "{\"a\": 1}"),
    ("yaml", "a: \"b\""),
    ("toml", "a = \"b\""),
    ("xml", "<a b=\"c\">d</a>"),
    ("markdown", "# A heading"),
    ("dockerfile", "FROM debian:12"),
    ("makefile", "all: ; $(CC) a.c"),
    ("diff", "+ added"),
    ("graphql", "query { a(b: 1) }"),
    ("protobuf", "message A { string b = 1; }"),
    ("lua", "local x = \"a\""),
    ("zig", "const x: u8 = 1;"),
    ("elixir", "def main do 1 end"),
    ("haskell", "main = putStrLn \"a\""),
];

#[test]
fn every_promised_language_has_colours_and_no_other_has() {
    for (language, line) in LANGUAGES {
        let html = rendering::markdown(&format!("```{language}\n{line}\n```\n")).concat();
        assert!(html.contains("<i class=\""), "{language}: {html}");
    }
    assert!(!rendering::markdown("```klingon\nfn main() {}\n```\n").concat().contains("<i class"));
}
