//! What a text defines for its other parts: targets of reference links, and footnotes.

use std::collections::HashMap;

use unicase::UniCase;

/// A label, compared as markdown compares labels. Labels of footnotes start with `^`, which no link's label does.
pub(crate) type Label = UniCase<String>;

/// What a label stands for. A footnote only has to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    Link { url: String, title: String },
    Footnote,
}

/// A definition and its position in the source.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) label: Label,
    pub(crate) definition: Definition,
    pub(crate) at: usize,
    /// Where it ends. For a footnote only the end of its start is known here.
    pub(crate) end: usize,
}

/// All that is defined so far. The first definition of a label is the one that counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definitions {
    by_label: HashMap<Label, Definition>,
}

impl Definitions {
    pub(crate) fn get(&self, label: &Label) -> Option<&Definition> {
        self.by_label.get(label)
    }

    pub(crate) fn link(&self, label: &str) -> Option<(&str, &str)> {
        if self.by_label.is_empty() {
            return None;
        }
        match self.by_label.get(&UniCase::new(label.to_owned()))? {
            Definition::Link { url, title } => Some((url, title)),
            Definition::Footnote => None,
        }
    }

    pub(crate) fn has_footnote(&self, label: &Label) -> bool {
        matches!(self.by_label.get(label), Some(Definition::Footnote))
    }

    /// Adds a definition, unless the label already has one.
    pub(crate) fn add(&mut self, label: Label, definition: Definition) {
        self.by_label.entry(label).or_insert(definition);
    }

    pub(crate) fn remove(&mut self, label: &Label) -> Option<Definition> {
        self.by_label.remove(label)
    }

    pub(crate) fn into_labels(self) -> impl Iterator<Item = Label> {
        self.by_label.into_keys()
    }

    /// These definitions, and the others for labels without one here.
    pub(crate) fn with(&self, others: &Self) -> Self {
        let mut all = others.clone();
        all.by_label.extend(self.by_label.iter().map(|(label, definition)| (label.clone(), definition.clone())));
        all
    }

    pub(crate) fn is_one_footnote(&self) -> bool {
        self.by_label.len() == 1 && self.by_label.values().all(|definition| *definition == Definition::Footnote)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_label.is_empty()
    }
}

/// The labels of everything in `source` that looks like a footnote reference, as written between `[` and `]`.
pub(crate) fn footnote_mentions(source: &str) -> impl Iterator<Item = &str> {
    source.match_indices('[').filter(|(at, _)| source[at + 1..].starts_with('^')).filter_map(move |(at, _)| {
        let inside = &source[at + 1..];
        let mut escaped = false;
        let end = inside.bytes().position(|byte| {
            let ends = !escaped && matches!(byte, b']' | b'[' | b'\n');
            escaped = !escaped && byte == b'\\';
            ends
        })?;
        inside[end..].starts_with(']').then_some(&inside[..end])
    })
}

/// The label of a footnote in the common form: with the `^`, white space collapsed.
pub(crate) fn footnote_label(mention: &str) -> Label {
    let words: Vec<&str> = mention.trim_start_matches('^').split_whitespace().collect();
    UniCase::new(format!("^{}", words.join(" ")))
}
