//! One figure, what it should be, what the floor is, and how figures are shown.

use std::fmt::Write;

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
    /// What the same costs without the product.
    pub(crate) floor: Option<f64>,
}

/// What the specification asks, where it does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    None,
    Most(f64),
    Least(f64),
    /// So many times the floor.
    TimesFloor(f64),
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.floor.filter(|floor| *floor > 0.0).map(|floor| self.value / floor)
    }

    fn is_met(&self) -> Option<bool> {
        match self.target {
            Target::None => None,
            Target::Most(most) => Some(self.value <= most),
            Target::Least(least) => Some(self.value >= least),
            Target::TimesFloor(times) => self.ratio().map(|ratio| ratio <= times),
        }
    }

    fn target(&self) -> String {
        match self.target {
            Target::None => String::new(),
            Target::Most(most) => format!("≤ {}", figure(most, self.unit)),
            Target::Least(least) => format!("≥ {}", figure(least, self.unit)),
            Target::TimesFloor(times) => format!("≤ {times} × floor"),
        }
    }
}

/// Rows as they are written to a file. Those a browser measured come in the same shape, and `ratio` and `met` may be missing.
pub(crate) fn json(rows: &[Row]) -> Vec<Value> {
    let row = |row: &Row| {
        json!({"name": row.name, "value": row.value, "unit": row.unit, "target": row.target(), "floor": row.floor,
            "ratio": row.ratio(), "met": row.is_met()})
    };
    rows.iter().map(row).collect()
}

/// A table in Markdown, to be put into a document as it is.
pub(crate) fn table(rows: &[Value]) -> String {
    let cells = |row: &Value| {
        let unit = row["unit"].as_str().unwrap_or_default();
        let number = |value: &Value| value.as_f64().map(|value| figure(value, unit));
        let ratio = row["ratio"].as_f64().or_else(|| Some(row["value"].as_f64()? / row["floor"].as_f64()?));
        let verdict = row["met"].as_bool().map(|met| if met { "ok" } else { "MISSED" });
        [
            row["name"].as_str().unwrap_or_default().to_owned(),
            number(&row["value"]).unwrap_or_default(),
            row["target"].as_str().map(str::to_owned).or_else(|| number(&row["target"])).unwrap_or_default(),
            number(&row["floor"]).unwrap_or_default(),
            ratio.filter(|ratio| ratio.is_finite()).map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            verdict.unwrap_or_default().to_owned(),
        ]
    };
    let head = ["", "measured", "target", "floor", "ratio", ""].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4, 5].map(width);
    let mut text = String::new();
    for (number, [name, measured, target, floor, ratio, verdict]) in lines.iter().enumerate() {
        let [w0, w1, w2, w3, w4, w5] = widths;
        let _ = writeln!(
            text,
            "| {name:<w0$} | {measured:>w1$} | {target:>w2$} | {floor:>w3$} | {ratio:>w4$} | {verdict:<w5$} |"
        );
        if number == 0 {
            let rule = |width: usize, end: &str| "-".repeat((width + 1).max(3)) + end;
            let rules = [rule(w0, "-"), rule(w1, ":"), rule(w2, ":"), rule(w3, ":"), rule(w4, ":"), rule(w5, "-")];
            let _ = writeln!(text, "|{}|", rules.join("|"));
        }
    }
    text
}

fn figure(value: f64, unit: &str) -> String {
    match value {
        large if large >= 1000.0 => format!("{large:.0} {unit}"),
        small if small < 1.0 => format!("{small:.3} {unit}"),
        value => format!("{value:.2} {unit}"),
    }
}

/// The value below which this part of the samples lies. Sorts them.
pub(crate) fn quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let place = ((samples.len() as f64 * part) as usize).min(samples.len().saturating_sub(1));
    samples.get(place).copied().unwrap_or(f64::NAN)
}
