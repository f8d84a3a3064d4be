//! Whatever Claude Code writes, its translation neither panics nor leaves a turn that cannot end.
#![no_main]

use std::collections::HashMap;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use protocol::{AgentSessionId, CliType, ErrorCode, ErrorDetail, SessionId, Timestamp, TurnId};
use providers::claude::translate::{LineSource, Translator, TranslatorOutput};
use providers::claude::wire::ClaudeLine;
use upserts::{Moment, UpsertConfig, UpsertProcessor};

fuzz_target!(|input: &[u8]| {
    let (Ok(cli_type), Ok(agent_id)) = (CliType::parse("claude-code"), AgentSessionId::parse("s")) else { return };
    let Ok(turn) = TurnId::parse("t") else { return };
    let mut translator = Translator::new(LineSource::Live, SessionId::new(&cli_type, &agent_id), agent_id);
    let now = Timestamp::from_unix_ms(0);
    let moment = Moment { wall: now, elapsed: Duration::ZERO };
    let mut turns: HashMap<TurnId, UpsertProcessor> = HashMap::new();
    let mut receive = |outputs: Vec<TranslatorOutput>| {
        for output in outputs {
            if let TranslatorOutput::Event(event) = output {
                let new =
                    || UpsertProcessor::new(UpsertConfig::live(), event.session_id.clone(), event.turn_id.clone());
                turns.entry(event.turn_id.clone()).or_insert_with(new).push(event, moment);
            }
        }
    };
    receive(translator.begin(turn, "prompt".into(), now));
    for line in input.split(|byte| *byte == b'\n') {
        if let Ok(line) = ClaudeLine::parse(line) {
            receive(translator.line(line, now));
        }
    }
    for processor in turns.values_mut() {
        processor.abort(ErrorDetail::new(ErrorCode::ProcessCrash, "gone"), moment);
        processor.take(Moment { wall: now, elapsed: Duration::from_secs(3600) });
        assert!(processor.is_finished());
    }
});
