//! The long bad day in its short form; `scripts/soak` makes it longer.

use testkit::soak::{Plan, run};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_day_loses_no_confirmed_word_and_leaks_nothing() {
    let plan = Plan {
        seed: number("SOAK_SEED", 1),
        rounds: number("SOAK_ROUNDS", 3) as usize,
        sessions: number("SOAK_SESSIONS", 3) as usize,
        turns: number("SOAK_TURNS", 6) as usize,
    };
    println!("{plan:?}");
    println!("{:#?}", run(plan).await);
}
