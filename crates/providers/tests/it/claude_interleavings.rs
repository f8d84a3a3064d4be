//! A sub-agent works beside its parent, so their lines may mix in any way. Whatever the mix, the same is shown in the
//! end.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::{AgentSessionId, CliType, SessionId, Timestamp, TurnId};
use providers::claude::translate::{LineSource, Translator, TranslatorOutput};
use providers::claude::wire::ClaudeLine;
use serde_json::{Value, json};
use upserts::{Emission, ItemBody, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

const RECORDED: &str = include_str!("../data/claude-code-2.1.325/special-tools-and-commands.ndjson");
/// Lines of the recording up to the call that starts the sub-agent, its prompt aside.
const BEFORE: std::ops::RangeInclusive<usize> = 18..=26;
/// The parent's lines after that, in steps. The fifth ends the turn, and before the sixth the next message is sent.
const PARENT: [std::ops::RangeInclusive<usize>; 7] = [27..=32, 35..=38, 40..=44, 45..=48, 49..=49, 55..=58, 59..=63];
const NEXT_MESSAGE_BEFORE: usize = 5;
/// The sub-agent's lines: a command, its result, its answer, its report.
const CHILD: [usize; 4] = [33, 39, 51, 53];
const COMMAND: &str = "wc -l README.md";

/// The recorded lines, with a command in place of the file that the sub-agent reads.
fn recorded() -> Vec<Value> {
    let mut lines: Vec<Value> =
        RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["line"].take()).collect();
    let call = &mut lines[CHILD[0]]["message"]["content"][0];
    assert_eq!(call["name"], "Read");
    call["name"] = "Bash".into();
    call["input"] = json!({"command": COMMAND});
    lines
}

/// Every way to put `children` things among `parents` things, each as the number of parents before each child.
fn interleavings(parents: usize, children: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..children {
        all = all
            .into_iter()
            .flat_map(|places| {
                let from = places.last().copied().unwrap_or(0);
                (from..=parents).map(move |place| places.iter().copied().chain([place]).collect())
            })
            .collect();
    }
    all
}

struct Play {
    translator: Translator,
    turns: Vec<(TurnId, UpsertProcessor)>,
    items: BTreeMap<String, ItemUpdate>,
    elapsed: Duration,
}

impl Play {
    fn new() -> Self {
        let agent_id = AgentSessionId::parse("0000053d-0000-4000-8000-00000000053d").unwrap();
        let id = SessionId::new(&CliType::parse("claude-code").unwrap(), &agent_id);
        let translator = Translator::new(LineSource::Live, id, agent_id);
        Self { translator, turns: Vec::new(), items: BTreeMap::new(), elapsed: Duration::ZERO }
    }

    fn begin(&mut self, turn: &str) {
        let outputs = self.translator.begin(TurnId::from_foreign(turn), "go".into(), Timestamp::from_unix_ms(1));
        self.take(outputs);
    }

    fn line(&mut self, line: &Value) {
        let line = ClaudeLine::parse(line.to_string().as_bytes()).unwrap();
        let outputs = self.translator.line(line, Timestamp::from_unix_ms(1));
        self.take(outputs);
    }

    fn take(&mut self, outputs: Vec<TranslatorOutput>) {
        for output in outputs {
            let TranslatorOutput::Event(event) = output else { continue };
            self.elapsed += Duration::from_secs(1);
            let moment = Moment { wall: Timestamp::from_unix_ms(1), elapsed: self.elapsed };
            if !self.turns.iter().any(|(turn, _)| *turn == event.turn_id) {
                let processor =
                    UpsertProcessor::new(UpsertConfig::live(), event.session_id.clone(), event.turn_id.clone());
                self.turns.push((event.turn_id.clone(), processor));
            }
            let (_, processor) = self.turns.iter_mut().find(|(turn, _)| *turn == event.turn_id).unwrap();
            processor.push(event, moment);
            for emission in processor.take(moment) {
                if let Emission::Item(item) = emission {
                    self.items.insert(item.item_id.to_string(), item);
                }
            }
        }
    }
}

fn play(lines: &[Value], children_after: &[usize]) -> BTreeMap<String, ItemUpdate> {
    let mut play = Play::new();
    play.begin("first");
    lines[BEFORE].iter().for_each(|line| play.line(line));
    let mut children = CHILD.iter().zip(children_after).peekable();
    for (step, parent) in PARENT.iter().enumerate() {
        while let Some((child, _)) = children.next_if(|(_, place)| **place == step) {
            play.line(&lines[*child]);
        }
        if step == NEXT_MESSAGE_BEFORE {
            play.begin("second");
        }
        lines[parent.clone()].iter().for_each(|line| play.line(line));
    }
    children.for_each(|(child, _)| play.line(&lines[*child]));
    play.items
}

/// Issue 17: now and then a sub-agent's command was shown as "Bash" without the command. Its result came after the end
/// of the parent's turn, with which the call had been forgotten.
#[test]
fn however_the_lines_of_a_sub_agent_and_its_parent_mix_the_same_is_shown_in_the_end() {
    let lines = recorded();
    let expected = play(&lines, &[1, 2, 5, 5]);
    let of_child: Vec<_> = expected.values().filter(|item| item.parent_item_id.is_some()).collect();
    assert_eq!(of_child.len(), 2, "a command and an answer: {of_child:#?}");
    let commands = of_child.iter().filter_map(|item| match &item.body {
        ItemBody::ToolCall { name, tool, output, .. } => Some((name, tool.as_ref()?, output.as_ref()?.to_string())),
        _ => None,
    });
    let [(name, tool, output)] = &commands.collect::<Vec<_>>()[..] else { panic!("{of_child:#?}") };
    assert_eq!((&***name, tool.command.as_deref(), tool.interrupted), ("Bash", Some(COMMAND), false));
    assert!(output.contains("# Demo"), "{output}");
    // The report is about the parent's call, and never comes before the answer that the sub-agent was launched.
    let all = interleavings(PARENT.len(), CHILD.len()).into_iter().filter(|places| places[3] > 0);
    let mut count = 0;
    for places in all {
        count += 1;
        let shown = play(&lines, &places);
        assert_eq!(shown.len(), expected.len(), "{places:?}");
        for (id, item) in &expected {
            assert_eq!(shown.get(id), Some(item), "the child's lines after these of the parent's: {places:?}");
        }
    }
    assert!(count > 300);
}
