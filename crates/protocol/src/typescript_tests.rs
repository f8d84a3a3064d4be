//! Keeps `web/shared/protocol.d.ts` equal to these types (`UPDATE_GOLDENS=1 cargo test -p protocol` writes it).

use std::path::PathBuf;

use ts_rs::{Config, TS};

use crate::*;

macro_rules! declarations {
    ($config:expr; $($type:ty),* $(,)?) => {
        [$(format!("export {}\n", <$type as TS>::decl($config))),*].concat()
    };
}

#[test]
fn the_browsers_types_are_these_types() {
    use crate::{facts::*, stream::*};
    let config = Config::default().with_large_int("number");
    let text = String::from(
        "// Written by `UPDATE_GOLDENS=1 cargo test -p protocol` from the Rust types. Do not edit.\n\n",
    ) + &declarations!(&config;
        ProjectId, CliType, SessionId, TurnId, ItemId, CallId, Timestamp, ErrorCode,
        Project, ProjectDefaults, SessionSummary, SessionState, Attention, Continuity, TurnRecord, TurnRecordStatus,
        AgentInfo, AgentStatus, PathCompletion, RecentDirectory, RecentSource, OpenTarget, ServerSettings, OpenerSetting,
        AgentDefinition, EnvVariable, AgentConfig, AgentEntry, ProbeOutcome, ProbeLogin,
        SessionFacts, PlanEntry, PlanStatus, ContextUse, AgentCommandInfo, ConfigOption, ConfigCategory, ConfigChoice,
        Origin, Usage, ToolDetail, ToolKind, ToolLocation, ToolContent, Permission, PermissionDecision,
        UpsertStatus, UpsertBody, UpsertView, BlockPatch, ToolSection, SectionKind, Upsert,
        TurnStatus, TurnEvent, ErrorMessage, ClientMessage, ServerMessage,
    );
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../web/shared/protocol.d.ts");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{}", path.display());
}
