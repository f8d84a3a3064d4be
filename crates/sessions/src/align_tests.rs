use journal::TurnOrigin;
use proptest::prelude::*;

use super::*;

/// A turn of ours that ran here: prompt and answer.
fn live(prompt: &str, answer: &str) -> TurnOutline {
    let id = TurnId::generate();
    let items = [Some("user"), Some("answer").filter(|_| !answer.is_empty())].into_iter().flatten();
    TurnOutline {
        items: items.map(|suffix| ItemId::from_foreign(&format!("{id}.{suffix}"))).collect(),
        turn_id: id,
        origin: TurnOrigin::Live,
        position: 0,
        started_at: Timestamp::default(),
        has_ended: true,
        is_forgotten: false,
        prompt: some(prompt),
        answer: some(answer),
        last_position: 0,
    }
}

/// A turn of the agent's under ids that we have never seen.
fn theirs(prompt: &str, answer: &str) -> AgentTurn {
    as_theirs(&live(prompt, answer))
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// The turn as the agent has it, under the same ids.
fn as_theirs(turn: &TurnOutline) -> AgentTurn {
    AgentTurn {
        id: turn.turn_id.clone(),
        started_at: turn.started_at,
        prompt: turn.prompt.clone(),
        answer: turn.answer.clone(),
        items: turn.items.clone(),
        places: (0..turn.items.len()).collect(),
    }
}

/// The turn as it is in the journal once it was added.
fn added(turn: &AgentTurn, known: &mut KnownIds) -> TurnOutline {
    let page: Vec<_> = turn.items.iter().map(|item| message(&turn.id, item, Origin::System, "")).collect();
    let (turn_id, items) = known.take_in(turn, &page);
    TurnOutline {
        turn_id,
        items: items.into_iter().map(|item| item.item_id).collect(),
        origin: TurnOrigin::Agent,
        prompt: turn.prompt.clone(),
        answer: turn.answer.clone(),
        ..live("", "")
    }
}

fn message(turn: &TurnId, item: &ItemId, origin: Origin, text: &str) -> ItemUpdate {
    ItemUpdate {
        turn_id: turn.clone(),
        session_id: protocol::SessionId::parse("codex:s").unwrap(),
        item_id: item.clone(),
        parent_item_id: None,
        source_timestamp: Timestamp::default(),
        emitted_at: Timestamp::default(),
        status: protocol::UpsertStatus::Complete,
        error: None,
        body: ItemBody::Message { text: text.into(), origin },
    }
}

/// Their turns that are missing, each with our turn that it follows.
fn missing(alignment: &Alignment) -> Vec<(usize, Option<usize>)> {
    alignment.missing.iter().map(|missing| (missing.theirs, missing.after)).collect()
}

#[track_caller]
fn check_same(ours: &[TurnOutline], theirs: &[AgentTurn]) {
    let alignment = align(ours, theirs, true);
    assert_eq!((missing(&alignment), &alignment.forgotten), (Vec::new(), &Vec::new()), "{alignment:?}");
}

#[test]
fn a_turn_is_known_by_its_id_whatever_its_text_has_become() {
    let ours = [live("/review it", "Fine."), live("next", "Done.")];
    let mut agent: Vec<_> = ours.iter().map(as_theirs).collect();
    agent[0].prompt = some("Please review the pull request with care.");
    agent[0].answer = some("I looked.");
    assert_eq!(align(&ours, &agent, true).matched, [(0, 0), (1, 1)]);
    check_same(&ours, &agent);
}

#[test]
fn a_turn_is_known_by_an_item_that_both_have() {
    let mut ours = [live("one", "1"), live("two", "2")];
    let mut agent = [theirs("one", "1"), theirs("zwei", "II")];
    ours[1].items.push(ItemId::from_foreign("call_0123456789"));
    agent[1].items.push(ItemId::from_foreign("call_0123456789"));
    ours[1].answer = None;
    assert_eq!(align(&ours, &agent, true).matched, [(0, 0), (1, 1)]);
}

#[test]
fn a_turn_is_known_by_the_users_text_under_whatever_ids() {
    let ours = [live("one", "1"), live("look at\n  this", "2"), live("three", "")];
    let agent = [
        theirs("one", "1"),
        theirs("look at this\n<context ref=\"file:///a\">\nfn main() {}\n</context>", "2"),
        theirs("three<system-reminder>Be brief.</system-reminder>", "3"),
    ];
    assert_eq!(align(&ours, &agent, true).matched, [(0, 0), (1, 1), (2, 2)]);
    check_same(&ours, &agent);
}

#[test]
fn of_equal_prompts_the_one_with_the_same_answer_is_meant() {
    let ours = [live("a", "x"), live("continue", "first"), live("continue", "second"), live("continue", "third")];
    for (answer, number) in [("first", 1), ("second", 2), ("third", 3)] {
        let agent = [theirs("a", "x"), theirs("continue", answer)];
        assert_eq!(align(&ours, &agent, true).matched, [(0, 0), (number, 1)]);
    }
    // Without an answer the newest.
    let agent = [theirs("a", "x"), theirs("continue", "")];
    assert_eq!(align(&ours, &agent, true).matched, [(0, 0), (3, 1)]);
}

#[test]
fn turns_added_in_a_terminal_are_missing_at_their_place() {
    let ours = [live("one", "1"), live("two", "2")];
    let agent = [
        theirs("zero", "0"),
        theirs("one", "1"),
        theirs("one and a half", "1.5"),
        theirs("two", "2"),
        theirs("three", "3"),
        theirs("four", "4"),
    ];
    let alignment = align(&ours, &agent, true);
    assert_eq!(missing(&alignment), [(0, None), (2, Some(0)), (4, Some(1)), (5, Some(1))]);
    assert!(alignment.forgotten.is_empty());
}

#[test]
fn a_journal_without_turns_lacks_them_all() {
    let agent = [theirs("", "a summary"), theirs("one", "1")];
    assert_eq!(missing(&align(&[], &agent, true)), [(0, None), (1, None)]);
}

#[test]
fn a_rewound_turn_is_forgotten_and_what_took_its_place_is_missing_behind_it() {
    let ours = [live("one", "1"), live("make it blue", "It is blue."), live("thanks", "Welcome.")];
    let agent = [theirs("one", "1"), theirs("make it red", "It is red.")];
    let alignment = align(&ours, &agent, true);
    assert_eq!((missing(&alignment), alignment.forgotten), (vec![(1, Some(2))], vec![1, 2]));
    // With an agent that keeps our ids, the same words with another answer are another turn as well.
    let ours = [live("one", "1"), live("again", "blue")];
    let agent = [as_theirs(&ours[0]), theirs("again", "red")];
    let alignment = align(&ours, &agent, true);
    assert_eq!((missing(&alignment), alignment.forgotten), (vec![(1, Some(1))], vec![1]));
}

#[test]
fn compacted_turns_are_forgotten_only_if_the_whole_history_lacks_them() {
    let ours = [live("one", "1"), live("two", "2"), live("three", "3"), live("four", "4")];
    let agent = [theirs("three", "3"), theirs("four", "4")];
    assert_eq!(align(&ours, &agent, true).forgotten, [0, 1]);
    assert!(align(&ours, &agent, false).forgotten.is_empty());
    // The page reaches back to the second, so it would have the third.
    let agent = [theirs("two", "2"), theirs("four", "4")];
    assert_eq!(align(&ours, &agent, false).forgotten, [2]);
    // A page without anything of ours says nothing about ours, and a history without a turn nothing at all.
    assert!(align(&ours, &[theirs("nine", "9")], false).forgotten.is_empty());
    assert_eq!(align(&ours, &[], true), Alignment::default());
}

#[test]
fn a_turn_is_forgotten_once_and_remembered_when_it_is_back() {
    let mut ours = [live("one", "1"), live("two", "2"), live("three", "3")];
    ours[1].is_forgotten = true;
    let agent = [theirs("one", "1"), theirs("three", "3")];
    let alignment = align(&ours, &agent, true);
    assert!(alignment.forgotten.is_empty() && alignment.remembered.is_empty(), "{alignment:?}");
    let agent = [theirs("one", "1"), theirs("two", "2"), theirs("three", "3")];
    assert_eq!(align(&ours, &agent, true).remembered, [1]);
    // The same words sent again are the new turn and not the forgotten one.
    let mut ours = [live("one", "1"), live("go", ""), live("go", "")];
    ours[1].is_forgotten = true;
    let alignment = align(&ours, &[theirs("one", "1"), theirs("go", "")], true);
    assert_eq!((&alignment.matched[..], &alignment.remembered[..]), (&[(0, 0), (2, 1)][..], &[][..]));
    assert!(alignment.forgotten.is_empty());
}

#[test]
fn a_running_turn_is_not_forgotten_and_stays_the_last() {
    let mut ours = [live("one", "1"), live("now", "")];
    ours[1].has_ended = false;
    let alignment = align(&ours, &[theirs("one", "1"), theirs("in a terminal", "yes")], true);
    assert_eq!((missing(&alignment), alignment.forgotten), (vec![(1, Some(0))], vec![]));
}

#[test]
fn a_turn_that_never_reached_the_agent_stays_and_hides_nothing() {
    let ours = [live("one", "1"), live("failed", ""), live("two", "2"), live("failed too", "")];
    check_same(&ours, &[theirs("one", "1"), theirs("two", "2")]);
    let agent = [theirs("one", "1"), theirs("in a terminal", "Yes."), theirs("two", "2"), theirs("failed too", "")];
    let alignment = align(&ours, &agent, true);
    assert_eq!((missing(&alignment), alignment.forgotten), (vec![(1, Some(1))], vec![]));
    // Where the agent reports times, they decide.
    let at = |seconds: i64| Timestamp::from_unix_ms(seconds * 1000);
    let ours = [live("one", "1"), TurnOutline { started_at: at(300), ..live("failed", "") }];
    let agent = [theirs("one", "1"), AgentTurn { started_at: at(200), ..theirs("in a terminal", "Yes.") }];
    assert_eq!(missing(&align(&ours, &agent, true)), [(1, Some(0))]);
}

#[test]
fn a_command_that_the_agent_has_written_out_is_known_by_its_answer() {
    let answer = "I have reviewed all of it and found nothing.";
    let ours = [live("one", "1"), live("/review", answer), live("two", "2")];
    let agent = [theirs("one", "1"), theirs("Review the changes of this branch.", answer), theirs("two", "2")];
    check_same(&ours, &agent);
    // Without an answer by its place.
    let ours = [live("one", "1"), live("/review", "Half of an ans"), live("two", "2")];
    let agent = [theirs("one", "1"), theirs("Review the changes of this branch.", ""), theirs("two", "2")];
    check_same(&ours, &agent);
}

#[test]
fn a_message_that_the_agent_has_divided_or_joined_is_one() {
    let ours = [live("a", "1"), live("look at this: [x] and that", "I did."), live("b", "2")];
    let agent = [theirs("a", "1"), theirs("look at this:", ""), theirs("[x] and that", "I did."), theirs("b", "2")];
    check_same(&ours, &agent);
    let ours = [live("a", "1"), live("first message, lost", ""), live("second message", "Both."), live("b", "2")];
    let agent = [theirs("a", "1"), theirs("first message, lost\nsecond message", "Both."), theirs("b", "2")];
    check_same(&ours, &agent);
    // An answer before it was cancelled is forgotten neither.
    let ours = [live("a", "1"), live("first message, cut", "Well"), live("second message", "Both."), live("b", "2")];
    let agent = [theirs("a", "1"), theirs("first message, cut\nsecond message", "Both."), theirs("b", "2")];
    check_same(&ours, &agent);
}

#[test]
fn what_has_no_message_of_the_user_is_a_turn_only_behind_one_that_is_missing() {
    let ours = [live("one", "1"), live("two", "2")];
    let agent = [
        theirs("", "This is a summary of what was said before."),
        theirs("one", "1"),
        theirs("[Request interrupted by user]", "No response requested."),
        theirs("two", "2"),
        theirs("", "Config warning"),
        theirs("three", "3"),
        theirs("", "A sub-agent has come to its end."),
    ];
    assert_eq!(missing(&align(&ours, &agent, true)), [(5, Some(1)), (6, Some(1))]);
    // An agent that keeps ids would have given it the one we know.
    let agent = [as_theirs(&ours[0]), theirs("", "A sub-agent has come to its end."), as_theirs(&ours[1])];
    assert_eq!(missing(&align(&ours, &agent, true)), [(1, Some(0))]);
    let mut ours = ours;
    ours[0].items.extend(agent[1].items.iter().cloned());
    check_same(&ours, &agent);
}

#[test]
fn notices_between_turns_are_never_forgotten() {
    let ours = [live("one", "1"), live("", ""), live("", "I am done with it."), live("two", "2")];
    check_same(&ours, &[theirs("one", "1"), theirs("two", "2")]);
}

#[test]
fn a_number_that_the_agent_gives_out_again_is_another_turn() {
    let numbered = |prompt: &str, answer: &str, number: usize| AgentTurn {
        id: TurnId::from_foreign(&format!("s.{number}")),
        items: vec![ItemId::from_foreign(&format!("s.{number}.1")), ItemId::from_foreign(&format!("s.{number}.2"))],
        ..theirs(prompt, answer)
    };
    let mut known = KnownIds::default();
    let before = [numbered("one", "1", 1), numbered("two", "2", 2)];
    let ours: Vec<_> = before.iter().map(|turn| added(turn, &mut known)).collect();
    check_same(&ours, &before);
    let after = [numbered("one", "1", 1), numbered("other", "Something else.", 2)];
    let alignment = align(&ours, &after, true);
    assert_eq!((missing(&alignment), &alignment.forgotten[..]), (vec![(1, Some(1))], &[1][..]));
    let new = added(&after[1], &mut KnownIds::of(&ours));
    assert_eq!((new.turn_id.as_str(), new.items[0].as_str()), ("s.2~2", "s.2.1~2"));
    let ours = [&ours[..], &[new]].concat();
    assert_eq!(align(&ours, &after, true).matched, [(0, 0), (2, 1)]);
    assert_eq!(align(&ours, &before, true).matched, [(0, 0), (1, 1)]);
}

#[test]
fn items_of_a_turn_that_is_added_keep_together_under_new_ids() {
    let turn = TurnId::from_foreign("t");
    let (call, nested) = (ItemId::from_foreign("call"), ItemId::from_foreign("nested"));
    let mut page = vec![
        message(&TurnId::from_foreign("other"), &ItemId::from_foreign("x"), Origin::User, "not this"),
        message(&turn, &call, Origin::User, "do it"),
        message(&turn, &nested, Origin::Agent, "a sub-agent"),
    ];
    page[2].parent_item_id = Some(call.clone());
    let turns = agent_turns(&page);
    assert_eq!(turns[1].prompt.as_deref(), Some("do it"));
    assert_eq!((&turns[1].answer, &turns[1].places[..]), (&None, &[1, 2][..]), "a sub-agent's answer is its own");
    let ours = [TurnOutline { turn_id: turn, items: vec![call], ..live("else", "") }];
    let (id, items) = KnownIds::of(&ours).take_in(&turns[1], &page);
    let ids: Vec<_> = items.iter().map(|item| item.item_id.as_str()).collect();
    assert_eq!((id.as_str(), &ids[..]), ("t~2", &["call~2", "nested"][..]));
    assert!(items.iter().all(|item| item.turn_id == id));
    assert_eq!(items[1].parent_item_id.as_ref().unwrap().as_str(), "call~2");
}

#[test]
fn long_histories_are_compared_whatever_is_in_them() {
    let words = ["yes", "continue", "go on", "no"];
    let ours: Vec<_> = (0..6_000).map(|number| live(words[number % 4], &format!("{number}"))).collect();
    let mut agent: Vec<_> = ours.iter().map(|turn| theirs(turn.prompt.as_deref().unwrap(), "")).collect();
    agent.drain(2_000..2_100);
    agent.push(theirs("last", "Last."));
    let alignment = align(&ours, &agent, true);
    assert_eq!(missing(&alignment), [(5_900, Some(5_999))]);
    assert_eq!((alignment.matched.len(), alignment.forgotten.len()), (5_900, 100));

    let ours: Vec<_> = (0..6_000).map(|number| live(&format!("ours {number}"), "")).collect();
    let agent: Vec<_> = (0..6_000).map(|number| theirs(&format!("theirs {number}"), "x")).collect();
    assert_eq!(align(&ours, &agent, true).missing.len(), 6_000);
}

/// What may happen to a turn in the agent's history.
#[derive(Clone, Debug)]
enum Edit {
    Keep,
    Drop,
    /// Its answer is lost, as after a cancel.
    Mute,
    /// Another turn in front of it.
    Insert(usize, usize),
    /// The user went back and wrote something else.
    Replace(usize, usize),
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, Edit)>> {
    let edit = prop_oneof![
        6 => Just(Edit::Keep),
        1 => Just(Edit::Drop),
        1 => Just(Edit::Mute),
        1 => (0..8usize, 0..4usize).prop_map(|(prompt, answer)| Edit::Insert(prompt, answer)),
        1 => (0..8usize, 0..4usize).prop_map(|(prompt, answer)| Edit::Replace(prompt, answer)),
    ];
    prop::collection::vec((0..6usize, 0..4usize, edit), 0..14)
}

fn words(prompt: usize, answer: usize) -> (String, String) {
    let prompts = ["yes", "continue", "fix the tests", "write the documentation", "why?", "/review", "run it", ""];
    let answers = ["", "Done.", "I have looked at all of it and it is well.", "There are two things left to be done."];
    (prompts[prompt].to_owned(), answers[answer].to_owned())
}

fn histories(edits: Vec<(usize, usize, Edit)>, keeps_ids: bool) -> (Vec<TurnOutline>, Vec<AgentTurn>) {
    let (mut ours, mut agent) = (Vec::new(), Vec::new());
    for (prompt, answer, edit) in edits {
        let (prompt, answer) = words(prompt, answer);
        let turn = live(&prompt, &answer);
        let copy = if keeps_ids { as_theirs(&turn) } else { theirs(&prompt, &answer) };
        match edit {
            Edit::Keep => agent.push(copy),
            Edit::Drop => {}
            Edit::Mute => agent.push(AgentTurn { answer: None, ..copy }),
            Edit::Insert(prompt, answer) => {
                let (prompt, answer) = words(prompt, answer);
                agent.extend([theirs(&prompt, &answer), copy]);
            }
            Edit::Replace(prompt, answer) => {
                let (prompt, answer) = words(prompt, answer);
                agent.push(theirs(&prompt, &answer));
            }
        }
        ours.push(turn);
    }
    (ours, agent)
}

fn is_rising(numbers: impl IntoIterator<Item = usize>) -> bool {
    let numbers: Vec<_> = numbers.into_iter().collect();
    numbers.windows(2).all(|pair| pair[0] < pair[1])
}

/// The journal after the alignment was applied.
fn applied(ours: &[TurnOutline], agent: &[AgentTurn], alignment: &Alignment) -> Vec<TurnOutline> {
    let mut known = KnownIds::of(ours);
    let mut behind: Vec<Vec<TurnOutline>> = vec![Vec::new(); ours.len() + 1];
    for MissingTurn { theirs, after } in &alignment.missing {
        behind[after.map_or(0, |after| after + 1)].push(added(&agent[*theirs], &mut known));
    }
    let mut result = std::mem::take(&mut behind[0]);
    for (number, turn) in ours.iter().enumerate() {
        let is_forgotten =
            alignment.forgotten.contains(&number) || turn.is_forgotten && !alignment.remembered.contains(&number);
        result.push(TurnOutline { is_forgotten, ..turn.clone() });
        result.append(&mut behind[number + 1]);
    }
    result
}

proptest! {
    #[test]
    fn an_alignment_keeps_the_order_and_is_complete(edits in edits(), keeps_ids: bool, cut in 0..6usize) {
        let (ours, mut agent) = histories(edits, keeps_ids);
        agent.drain(..cut.min(agent.len()));
        let is_whole = cut == 0;
        let alignment = align(&ours, &agent, is_whole);
        prop_assert!(is_rising(alignment.matched.iter().map(|(ours, _)| *ours)));
        prop_assert!(is_rising(alignment.matched.iter().map(|(_, theirs)| *theirs)));
        prop_assert!(is_rising(alignment.missing.iter().map(|missing| missing.theirs)));
        prop_assert!(alignment.missing.iter().map(|missing| missing.after).is_sorted());
        // Every turn of ours is there once, and each of the agent's is ours, or missing, or not a turn.
        for MissingTurn { theirs, after } in &alignment.missing {
            let place = after.map_or(0, |after| after + 1);
            for (ours, matched) in &alignment.matched {
                prop_assert!(theirs != matched);
                prop_assert_eq!(matched < theirs, *ours < place);
            }
        }
        prop_assert!(alignment.forgotten.iter().all(|ours| alignment.matched.iter().all(|pair| pair.0 != *ours)));
        prop_assert!(alignment.remembered.is_empty());
    }

    #[test]
    fn what_was_added_is_never_added_again(edits in edits(), keeps_ids: bool, cut in 0..6usize) {
        let (ours, mut agent) = histories(edits, keeps_ids);
        agent.drain(..cut.min(agent.len()));
        let is_whole = cut == 0;
        let alignment = align(&ours, &agent, is_whole);
        let ours = applied(&ours, &agent, &alignment);
        let again = align(&ours, &agent, is_whole);
        let nothing = Alignment { matched: again.matched.clone(), ..Alignment::default() };
        prop_assert!(again == nothing, "{:?}\n{:#?}\n{:#?}", again, ours, agent);
    }

    #[test]
    fn a_history_that_lost_only_ids_and_answers_lacks_nothing(edits in edits(), keeps_ids: bool) {
        let harmless = edits.into_iter().filter(|(.., edit)| matches!(edit, Edit::Keep | Edit::Mute)).collect();
        let (ours, agent) = histories(harmless, keeps_ids);
        let alignment = align(&ours, &agent, true);
        prop_assert!(alignment.missing.is_empty() && alignment.forgotten.is_empty(), "{:?}", alignment);
    }

    #[test]
    fn turns_added_at_the_end_are_all_missing(edits in edits(), more in 1..5usize, keeps_ids: bool) {
        let harmless = edits.into_iter().filter(|(.., edit)| matches!(edit, Edit::Keep)).collect();
        let (ours, mut agent) = histories(harmless, keeps_ids);
        let known = agent.len();
        agent.extend((0..more).map(|number| theirs(&format!("added in a terminal {number}"), "Yes, that is so.")));
        let alignment = align(&ours, &agent, true);
        let added: Vec<_> = alignment.missing.iter().map(|missing| missing.theirs).collect();
        prop_assert_eq!(added, (known..known + more).collect::<Vec<_>>());
        prop_assert!(alignment.forgotten.is_empty());
    }
}
