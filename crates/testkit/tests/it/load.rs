//! Load, in its short form. `scripts/load` says how much is too much for a suite.

use testkit::load;

/// What is asked of a case: the short form, unless `LOAD_WHOLE` is set.
fn size(short: usize, whole: usize) -> usize {
    if std::env::var_os("LOAD_WHOLE").is_some() { whole } else { short }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_windows_on_one_session_end_with_the_same_text() {
    let figures = load::many_windows(200, size(50, 2_000)).await;
    println!("{}", load::table("200 windows on one session", &figures));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_sessions_that_stream_on_one_agent_lose_no_word() {
    let figures = load::many_sessions(100, size(100, 20_000)).await;
    println!("{}", load::table("100 sessions streaming on one agent", &figures));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_sessions_in_a_hundred_projects_are_listed_before_and_after_a_restart() {
    let figures = load::long_lists(100, 10).await;
    println!("{}", load::table("1,000 sessions in 100 projects", &figures));
}

#[ignore = "scripts/load runs it: a page is shown 96 MiB of one message, which takes a debug build minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_without_end_is_stopped_with_a_word_about_it_and_the_session_goes_on() {
    let figures = load::one_turn(10_240).await;
    println!("{}", load::table("output without end in one turn", &figures));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_sends_more_than_memory_holds_goes_on_in_bounded_memory() {
    let (script, bytes) = if size(0, 1) == 0 { ("flood:2000", 18_000) } else { ("big-flood:1", 1 << 20) };
    let figures = load::many_turns(size(32, 10_240), script, bytes).await;
    println!("{}", load::table("output in turn after turn", &figures));
}
