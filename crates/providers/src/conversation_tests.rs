use super::*;

const GRACE: Duration = Duration::from_secs(4);
const SILENCE: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(900);

/// All that time may bring.
const LISTENING: Conditions = Conditions { expects_output: true, can_evict: true };
const DEAF: Conditions = Conditions { expects_output: false, can_evict: false };

fn conversation(now: Instant) -> Conversation<&'static str> {
    with_options(now, &[])
}

fn with_options(now: Instant, options: &[(&str, &str)]) -> Conversation<&'static str> {
    let limits = ConversationLimits {
        silence_after: SILENCE,
        silence_reports: SilenceReports::Once,
        cancel_grace: GRACE,
        idle_after: Some(IDLE),
    };
    Conversation::new(limits, values(options), now)
}

fn values(options: &[(&str, &str)]) -> OptionValues {
    options.iter().map(|(option, value)| ((*option).into(), (*value).into())).collect()
}

fn turn(id: &str) -> TurnId {
    TurnId::parse(id).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_message_is_held_until_the_agent_is_ready_for_it() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    assert!(conversation.is_idle());
    conversation.hold("hello", now);
    assert_eq!((conversation.is_idle(), conversation.held(), conversation.turn()), (false, Some(&"hello"), None));
    assert_eq!(conversation.take_deliverable(now), None);
    conversation.restore_options(|_, _| true);
    assert!(conversation.is_ready(), "there is nothing to restore");
    assert_eq!(conversation.take_deliverable(now), Some("hello"));
    conversation.begin_turn(turn("t1"), now);
    assert_eq!((conversation.turn(), conversation.held()), (Some(&turn("t1")), None));
    assert!(!conversation.end_turn(now));
    assert!(conversation.is_idle());
}

#[test]
fn a_cancelled_message_that_was_held_never_reaches_the_agent() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    assert_eq!(conversation.cancel(now), CancelStep::Nothing);
    conversation.hold("hello", now);
    assert_eq!(conversation.cancel(now), CancelStep::Withdraw("hello"));
    conversation.restore_options(|_, _| true);
    assert_eq!(conversation.take_deliverable(now), None);
    assert!(conversation.is_idle());
}

#[test]
fn a_cancelled_turn_has_its_grace_once() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    conversation.begin_turn(turn("t1"), now);
    assert_eq!(conversation.deadline(DEAF), None);
    assert_eq!(conversation.cancel(now), CancelStep::AskAgent(turn("t1")));
    assert!(conversation.is_cancelling());
    assert_eq!(conversation.cancel(now + seconds(2)), CancelStep::Nothing);
    assert_eq!(conversation.deadline(DEAF), Some(now + GRACE));
    assert_eq!(conversation.on_time(now + seconds(3), DEAF), None);
    assert_eq!(conversation.on_time(now + GRACE, DEAF), Some(Due::CancelOverdue(turn("t1"))));
    conversation.end_turn(now + GRACE);
    assert_eq!((conversation.is_cancelling(), conversation.deadline(DEAF)), (false, None));
}

#[test]
fn a_turn_that_ends_within_its_grace_is_not_overdue() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    conversation.begin_turn(turn("t1"), now);
    conversation.cancel(now);
    conversation.end_turn(now + seconds(1));
    assert_eq!(conversation.on_time(now + GRACE, DEAF), None);
}

#[test]
fn a_silence_is_reported_once_and_ends_with_the_next_output() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    conversation.begin_turn(turn("t1"), now);
    assert!(!conversation.on_output(now + seconds(5)));
    assert_eq!(conversation.deadline(LISTENING), Some(now + seconds(35)));
    assert_eq!(conversation.deadline(DEAF), None, "a tool runs");
    assert_eq!(conversation.on_time(now + seconds(36), LISTENING), Some(Due::Silence(seconds(31))));
    assert_eq!((conversation.on_time(now + seconds(99), LISTENING), conversation.deadline(LISTENING)), (None, None));
    assert!(conversation.on_output(now + seconds(100)));
    assert!(!conversation.on_output(now + seconds(101)));
    assert_eq!(conversation.deadline(LISTENING), Some(now + seconds(131)));
}

#[test]
fn a_silence_may_be_reported_again_and_again() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    conversation.limits.silence_reports = SilenceReports::Repeated;
    conversation.begin_turn(turn("t1"), now);
    assert_eq!(conversation.on_time(now + seconds(30), LISTENING), Some(Due::Silence(seconds(30))));
    assert_eq!(conversation.on_time(now + seconds(59), LISTENING), None);
    assert_eq!(conversation.on_time(now + seconds(60), LISTENING), Some(Due::Silence(seconds(60))));
}

#[test]
fn a_turn_that_ends_ends_its_silence() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    conversation.begin_turn(turn("t1"), now);
    conversation.on_time(now + SILENCE, LISTENING);
    conversation.cancel(now + SILENCE);
    assert!(conversation.end_turn(now + SILENCE));
    conversation.begin_turn(turn("t2"), now + SILENCE);
    assert!(!conversation.end_turn(now + SILENCE));
}

#[test]
fn a_held_message_whose_agent_does_not_answer_is_a_silence_too() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    conversation.hold("hello", now);
    assert_eq!(conversation.on_time(now + SILENCE, LISTENING), Some(Due::Silence(SILENCE)));
    assert!(conversation.on_output(now + SILENCE));
}

#[test]
fn an_agent_is_evicted_when_nothing_has_happened_for_long() {
    let now = Instant::now();
    let mut conversation = conversation(now);
    assert_eq!((conversation.deadline(LISTENING), conversation.deadline(DEAF)), (Some(now + IDLE), None));
    conversation.on_use(now + seconds(100));
    assert_eq!(conversation.on_time(now + IDLE, LISTENING), None);
    conversation.begin_turn(turn("t1"), now + seconds(200));
    assert_eq!(conversation.on_time(now + seconds(100) + IDLE, DEAF), None, "a turn runs");
    conversation.end_turn(now + seconds(300));
    let due = now + seconds(300) + IDLE;
    assert_eq!(conversation.on_time(due, LISTENING), Some(Due::EvictIdle));
    assert_eq!(conversation.deadline(LISTENING), Some(due + IDLE), "not at once again");
    conversation.limits.idle_after = None;
    assert_eq!(conversation.deadline(LISTENING), None);
}

#[test]
fn the_user_s_options_are_restored_before_a_message_is_delivered() {
    let now = Instant::now();
    let mut conversation = with_options(now, &[("mode", "plan"), ("model", "big")]);
    conversation.hold("hello", now);
    conversation.restore_options(|_, _| true);
    assert_eq!(conversation.next_option(), Some(("mode".into(), "plan".into())));
    conversation.option_restored("mode");
    assert!(conversation.is_restoring());
    assert_eq!(conversation.take_deliverable(now), None);
    assert_eq!(conversation.next_option(), Some(("model".into(), "big".into())));
    assert_eq!(conversation.next_option(), None);
    conversation.option_restored("model");
    assert_eq!(conversation.take_deliverable(now), Some("hello"));

    conversation.agent_is_absent();
    assert!(!conversation.is_ready());
    conversation.restore_options(|option, _| option == "mode");
    assert_eq!((conversation.next_option(), conversation.next_option()), (Some(("mode".into(), "plan".into())), None));
}

#[test]
fn an_agent_that_refuses_an_option_gets_no_message_before_it_was_asked_again() {
    let now = Instant::now();
    let mut conversation = with_options(now, &[("mode", "plan"), ("model", "big")]);
    conversation.hold("hello", now);
    conversation.restore_options(|_, _| true);
    while conversation.next_option().is_some() {}
    conversation.options_not_restored();
    conversation.option_restored("model");
    assert!(conversation.is_unrestored());
    assert_eq!(conversation.take_deliverable(now), None);
    assert_eq!(conversation.take_held(now), Some("hello"));

    conversation.restore_options(|_, _| true);
    while let Some((option, _)) = conversation.next_option() {
        conversation.option_restored(&option);
    }
    assert!(conversation.is_ready());
    conversation.agent_is_absent();
    conversation.options_not_restored();
    assert!(!conversation.is_unrestored(), "one that is not there lacks nothing");
}

#[test]
fn what_the_user_sets_meanwhile_wins_over_what_is_restored() {
    let now = Instant::now();
    let mut conversation = with_options(now, &[("mode", "plan"), ("model", "big")]);
    conversation.restore_options(|_, _| true);
    conversation.next_option();
    conversation.requeue_option("mode", "default");
    conversation.option_restored("mode");
    assert_eq!(conversation.next_option(), Some(("mode".into(), "default".into())));
    conversation.option_superseded("mode");
    conversation.option_superseded("model");
    assert!(conversation.is_ready());
    conversation.requeue_option("mode", "other");
    assert_eq!(conversation.next_option(), None, "an agent that is ready is asked by the user's own request");
}

#[test]
fn the_user_s_options_are_given_out_when_they_change() {
    let now = Instant::now();
    let mut conversation = with_options(now, &[("mode", "plan")]);
    let set = |options: &mut OptionValues, value: &str| drop(options.insert("mode".into(), value.into()));
    assert_eq!(conversation.update_options(|options| set(options, "plan")), None);
    assert_eq!(conversation.update_options(|options| set(options, "default")), Some(values(&[("mode", "default")])));
    assert_eq!(conversation.options(), &values(&[("mode", "default")]));
}
