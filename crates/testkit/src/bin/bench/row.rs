//! One figure, what it should be, and how figures are shown.

use std::fmt::Write;

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The most it should be, where the specification says.
    pub(crate) most: Option<f64>,
}

impl Row {
    fn verdict(&self) -> &'static str {
        match self.most {
            Some(most) if self.value > most => "over",
            Some(_) => "ok",
            None => "",
        }
    }
}

pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<44} {:>12} {:>12}  \n", "", "measured", "target");
    for row in rows {
        let target = row.most.map(|most| format!("≤ {most} {}", row.unit)).unwrap_or_default();
        let measured = format!("{:.2} {}", row.value, row.unit);
        let _ = writeln!(text, "{:<44} {measured:>12} {target:>12}  {}", row.name, row.verdict());
    }
    text
}

pub(crate) fn json(rows: &[Row]) -> Value {
    let rows = rows.iter().map(|row| json!({"name": row.name, "value": row.value, "unit": row.unit, "most": row.most}));
    Value::Array(rows.collect())
}
