//! The output of an agent arrives as lines, whatever it writes and however slowly.

use agent_process::{AgentProcess, LINE_BYTES_MAX, LineError};

use crate::harness::{FIXTURE, agent, line, soon, spawn};

#[tokio::test]
async fn lines_go_in_and_come_out_in_order() {
    let (mut stdout, stdin, process) = spawn(&["echo"]).await.split();
    for number in 0..1000 {
        stdin.send(format!("line {number}")).await.unwrap();
    }
    for number in 0..1000 {
        assert_eq!(line(&mut stdout).await, format!("line {number}"));
    }
    stdin.close();
    assert!(soon(stdout.next_line()).await.unwrap().is_none());
    assert!(soon(process.gone()).await.is_success());
}

#[tokio::test]
async fn half_a_line_survives_a_cancelled_read() {
    let (mut stdout, stdin, _process) = spawn(&["half-lines"]).await.split();
    stdin.send("abcd").await.unwrap();
    assert_eq!(line(&mut stdout).await, "cd");
    // The pipe now holds `ab` without a newline; each of these reads is dropped after it has read that.
    for _ in 0..1000 {
        tokio::select! {
            biased;
            line = stdout.next_line() => panic!("not a line yet: {line:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    stdin.send("efgh").await.unwrap();
    assert_eq!(line(&mut stdout).await, "abgh");
}

#[tokio::test]
async fn a_last_line_without_newline_is_marked() {
    let (mut stdout, stdin, _process) = spawn(&["half-lines"]).await.split();
    stdin.send("abcd").await.unwrap();
    stdin.close();
    assert!(soon(stdout.next_line()).await.unwrap().unwrap().is_ended());
    let last = soon(stdout.next_line()).await.unwrap().unwrap();
    assert_eq!((last.as_bytes(), last.is_ended()), (b"ab".as_slice(), false));
    assert!(soon(stdout.next_line()).await.unwrap().is_none());
    assert!(soon(stdout.next_line()).await.unwrap().is_none());
}

#[tokio::test]
async fn bytes_that_are_not_utf8_arrive_as_they_are() {
    let (mut stdout, _stdin, _process) = spawn(&["bad-utf8"]).await.split();
    assert_eq!(soon(stdout.next_line()).await.unwrap().unwrap().as_bytes(), b"a\xff\xfeb");
    assert_eq!(line(&mut stdout).await, "\u{fffd}");
}

#[tokio::test]
async fn a_line_of_60_megabytes_passes() {
    let (mut stdout, _stdin, _process) = spawn(&["long-line", "60000000"]).await.split();
    assert_eq!(line(&mut stdout).await.len(), 60_000_000);
    assert_eq!(line(&mut stdout).await, "next");
}

#[tokio::test]
async fn a_line_over_the_limit_is_an_error_and_the_next_line_arrives() {
    let length = (LINE_BYTES_MAX + 1024 * 1024).to_string();
    let (mut stdout, _stdin, _process) = spawn(&["long-line", &length]).await.split();
    assert!(matches!(soon(stdout.next_line()).await, Err(LineError::TooLong(_))));
    assert_eq!(line(&mut stdout).await, "next");
}

#[tokio::test]
async fn a_line_without_end_is_an_error_once_and_the_agent_can_still_be_stopped() {
    let command = agent(&["endless-line"]).line_bytes_max(1024 * 1024);
    let (mut stdout, _stdin, process) = AgentProcess::spawn(command).await.unwrap().split();
    assert!(matches!(soon(stdout.next_line()).await, Err(LineError::TooLong(_))));
    let (rest, _) = soon(async { tokio::join!(stdout.next_line(), process.kill()) }).await;
    assert!(rest.unwrap().is_none());
}

#[tokio::test]
async fn a_flood_of_a_gigabyte_arrives_whole_in_little_memory() {
    let [lines, too_long, bytes, peak_kb] = count_lines(&["flood", "1000000000"]).await;
    assert_eq!([lines, too_long, bytes], [1_000_000, 0, 1_000_000_000]);
    assert!(peak_kb < 32 * 1024, "{peak_kb} kB");
}

#[tokio::test]
async fn a_line_of_500_megabytes_takes_no_more_memory_than_the_limit() {
    let [lines, too_long, _, peak_kb] = count_lines(&["long-line", "500000000"]).await;
    assert_eq!([lines, too_long], [1, 1]);
    assert!(peak_kb < 96 * 1024, "{peak_kb} kB");
}

/// Runs in its own process, whose memory no other test uses.
async fn count_lines(arguments: &[&str]) -> [u64; 4] {
    let counted = tokio::process::Command::new(FIXTURE).arg("count-lines").args(arguments).kill_on_drop(true).output();
    let counted = String::from_utf8(soon(counted).await.unwrap().stdout).unwrap();
    let numbers: Vec<u64> = counted.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}
