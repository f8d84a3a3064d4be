//! Which letter a grammar's scope gets. Each letter is one colour of the theme.
//!
//! | class | token | what |
//! |---|---|---|
//! | `k` | `--syn-kw` | keyword, storage, operator words |
//! | `f` | `--syn-fn` | function, macro, tag, section heading |
//! | `s` | `--syn-str` | string, regular expression |
//! | `t` | `--syn-type` | type, class, built-in |
//! | `n` | `--syn-num` | number, constant, escape |
//! | `p` | `--syn-prop` | property, attribute, key |
//! | `c` | `--syn-com` | comment |
//! | none | `--syn-punc` | punctuation, operator: every second span of most code, so it goes without a class |
//! | `a` `d` | `--ok` `--danger` | inserted and deleted lines of a patch |

use std::sync::LazyLock;

use syntect::parsing::{Scope, ScopeStack};

/// All letters that are written, for the allow-list.
pub(crate) const CLASSES: &[&str] = &["k", "f", "s", "t", "n", "p", "c", "a", "d"];

/// The one letter that is not written to the HTML.
pub(super) const PUNCTUATION: char = 'o';

/// From general to specific: of two matches the longer one wins. A blank letter means plain text.
const TABLE: &[(&str, char)] = &[
    ("comment", 'c'),
    ("punctuation.definition.comment", 'c'),
    ("string", 's'),
    ("punctuation.definition.string", 's'),
    ("constant", 'n'),
    ("constant.other.symbol", 's'),
    ("keyword", 'k'),
    ("keyword.operator", PUNCTUATION),
    ("keyword.operator.word", 'k'),
    ("keyword.operator.logical.python", 'k'),
    ("storage", 'k'),
    ("storage.type.numeric", 'n'),
    ("entity.name.function", 'f'),
    ("entity.name.tag", 'f'),
    ("entity.name.section", 'f'),
    ("entity.name.type", 't'),
    ("entity.name.class", 't'),
    ("entity.name.struct", 't'),
    ("entity.name.enum", 't'),
    ("entity.name.trait", 't'),
    ("entity.name.interface", 't'),
    ("entity.name.impl", 't'),
    ("entity.name.namespace", 't'),
    ("entity.name.module", 't'),
    ("entity.other.inherited-class", 't'),
    ("entity.other.attribute-name", 'p'),
    ("entity.name.constant", 'n'),
    ("entity.name.macro", 'f'),
    ("support.function", 'f'),
    ("support.macro", 'f'),
    ("support.type", 't'),
    ("support.class", 't'),
    ("support.constant", 'n'),
    ("support.type.property-name", 'p'),
    ("variable.function", 'f'),
    ("variable.language", 'k'),
    ("variable.other.member", 'p'),
    ("variable.other.property", 'p'),
    ("variable.other.object.property", 'p'),
    ("meta.object-literal.key", 'p'),
    ("punctuation", PUNCTUATION),
    ("punctuation.section.interpolation", PUNCTUATION),
    ("markup.heading", 'f'),
    ("markup.bold", 'k'),
    ("markup.italic", 'k'),
    ("markup.raw", 's'),
    ("markup.underline.link", 's'),
    ("markup.list", PUNCTUATION),
    ("markup.inserted", 'a'),
    ("markup.deleted", 'd'),
    ("meta.diff.header", 'p'),
    ("meta.diff.range", 'k'),
    // Scopes that only describe the context.
    ("source", ' '),
    ("text", ' '),
];

static RULES: LazyLock<Vec<(Scope, char)>> = LazyLock::new(|| {
    let mut rules: Vec<_> =
        TABLE.iter().filter_map(|(name, letter)| Scope::new(name).ok().map(|scope| (scope, *letter))).collect();
    rules.sort_by_key(|(scope, _)| std::cmp::Reverse(scope.len()));
    rules
});

/// Strings inside these scopes are names of properties.
static KEYS: LazyLock<Vec<Scope>> = LazyLock::new(|| {
    ["meta.mapping.key", "meta.structure.dictionary.key", "entity.name.tag.yaml"]
        .iter()
        .filter_map(|name| Scope::new(name).ok())
        .collect()
});

thread_local! {
    /// Grammars use a few hundred scopes, each of them thousands of times.
    static KNOWN: std::cell::RefCell<std::collections::HashMap<Scope, Option<char>>> = std::cell::RefCell::default();
}

/// The letter of the innermost scope that has one.
pub(super) fn of(stack: &ScopeStack) -> Option<char> {
    let scopes = stack.as_slice();
    let letter = KNOWN.with_borrow_mut(|known| {
        scopes.iter().rev().find_map(|scope| *known.entry(*scope).or_insert_with(|| letter(*scope)))
    })?;
    match letter {
        ' ' => None,
        's' if scopes.iter().any(|scope| KEYS.iter().any(|key| key.is_prefix_of(*scope))) => Some('p'),
        letter => Some(letter),
    }
}

fn letter(scope: Scope) -> Option<char> {
    RULES.iter().find(|(prefix, _)| prefix.is_prefix_of(scope)).map(|(_, letter)| *letter)
}
