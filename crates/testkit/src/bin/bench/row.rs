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

pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<60} {:>14} {:>15} {:>14} {:>7}\n", "", "measured", "target", "floor", "ratio");
    for row in rows {
        let floor = row.floor.map(|floor| figure(floor, row.unit)).unwrap_or_default();
        let ratio = row.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let verdict = match row.is_met() {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        };
        let (measured, target) = (figure(row.value, row.unit), row.target());
        let _ = writeln!(text, "{:<60} {measured:>14} {target:>15} {floor:>14} {ratio:>7}  {verdict}", row.name);
    }
    text
}

pub(crate) fn json(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({"name": row.name, "value": row.value, "unit": row.unit, "target": row.target(), "floor": row.floor,
            "ratio": row.ratio(), "met": row.is_met()})
    };
    rows.iter().map(row).collect()
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
