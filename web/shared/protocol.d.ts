// Written by `UPDATE_GOLDENS=1 cargo test -p protocol` from the Rust types. Do not edit.

export type ProjectId = string;
export type CliType = string;
export type SessionId = string;
export type TurnId = string;
export type ItemId = string;
export type CallId = string;
export type Timestamp = string;
export type ErrorCode = "INVALID_MESSAGE" | "PROJECT_PATH_INVALID" | "PROJECT_DUPLICATE" | "PROJECT_NOT_FOUND" | "SESSION_NOT_FOUND" | "SESSION_LOAD_FAILED" | "SESSION_CREATE_FAILED" | "TURN_IN_PROGRESS" | "UNSUPPORTED_CLI_TYPE" | "AGENT_NOT_INSTALLED" | "AGENT_HANDSHAKE_FAILED" | "AGENT_UNAVAILABLE" | "AGENT_PROTOCOL_ERROR" | "PROCESS_CRASH" | "PROJECT_ID_REQUIRED" | "STORAGE_FAILED" | "OPEN_FAILED" | "AGENTS_FILE_CHANGED" | "AGENTS_FILE_UNUSABLE" | "FORBIDDEN" | "UNAUTHORIZED" | "INTERNAL_ERROR";
export type Project = { id: ProjectId, path: string, name: string, addedAt: Timestamp, 
/**
 * What new sessions of this project begin with.
 */
defaults?: ProjectDefaults, };
export type ProjectDefaults = { cliType: CliType, 
/**
 * Options of that agent (its mode, its model) by their ids. A session of another agent gets none of them.
 */
options?: { [key in string]: string }, };
export type SessionSummary = { id: SessionId, projectId: ProjectId, title: string, lastActiveAt: Timestamp, createdAt: Timestamp, cliType: CliType, attention: Attention, 
/**
 * One short line: what is asked, or what went wrong.
 */
reason?: string, continuity: Continuity, 
/**
 * It is disconnected because its agent, which runs, did not stop when asked to. A restart fixes that.
 */
hangs?: boolean, 
/**
 * When the present attention began.
 */
since?: Timestamp, };
export type SessionState = { attention: Attention, 
/**
 * One short line: what is asked, or what went wrong.
 */
reason?: string, continuity: Continuity, 
/**
 * It is disconnected because its agent, which runs, did not stop when asked to. A restart fixes that.
 */
hangs?: boolean, 
/**
 * When the present attention began.
 */
since?: Timestamp, };
export type Attention = "needs_permission" | "error" | "finished" | "working" | "starting" | "reconnecting" | "disconnected" | "idle";
export type Continuity = "dormant" | "live" | "resumed" | "copy";
export type TurnRecord = { turnId: TurnId, status: TurnRecordStatus, 
/**
 * Left out where the agent's history does not say it.
 */
startedAt?: Timestamp, endedAt?: Timestamp, modelId?: string, usage?: Usage, errorCode?: string, errorMessage?: string, 
/**
 * The agent has removed it from its own history: it no longer remembers it.
 */
forgotten?: boolean, };
export type TurnRecordStatus = "running" | "completed" | "cancelled" | "error";
export type AgentInfo = { cliType: CliType, name: string, installed: boolean, version?: string, 
/**
 * The program that was looked for.
 */
program?: string, 
/**
 * The command that installs it.
 */
installHint?: string, 
/**
 * Whether it is logged in, where that can be known without starting it.
 */
loggedIn?: boolean, 
/**
 * The command that logs it in.
 */
loginHint?: string, status: AgentStatus, };
export type AgentStatus = "idle" | "starting" | "connected" | "disconnected" | "reconnecting";
export type PathCompletion = { path: string, isProject: boolean, 
/**
 * A git repository begins there.
 */
isRepository: boolean, };
export type RecentDirectory = { path: string, source: RecentSource, isRepository: boolean, };
export type RecentSource = "removed" | "agent";
export type OpenTarget = "editor" | "terminal";
export type ServerSettings = { editor: OpenerSetting, terminal: OpenerSetting, };
export type OpenerSetting = { 
/**
 * As the user set it; empty when the default is used.
 */
command: string, 
/**
 * The command that is used without a setting, if a program for it was found.
 */
defaultCommand?: string, };
export type AgentDefinition = { name: string, 
/**
 * A program in `PATH`, or the path of one.
 */
command: string, args: Array<string>, 
/**
 * In the order of the file.
 */
env: Array<EnvVariable>, };
export type EnvVariable = { name: string, value: string, };
export type AgentConfig = { 
/**
 * The path of `agents.json`.
 */
file: string, 
/**
 * Stands for the content of the file as it was read. A change repeats it, so that no other change is overwritten.
 */
revision: string, 
/**
 * Why the file cannot be used and is not changed.
 */
problem?: string, 
/**
 * In the order of the picker.
 */
agents: Array<AgentEntry>, };
export type AgentEntry = { "kind": "built_in", cliType: CliType, name: string, 
/**
 * The command line that starts it.
 */
command: string, 
/**
 * The environment variable that changes its command line.
 */
variable?: string, 
/**
 * A configured agent of this type is used instead.
 */
isReplaced: boolean, } | { "kind": "configured", cliType: CliType, definition: AgentDefinition, } | { "kind": "unusable", name: string, reason: string, };
export type ProbeOutcome = { "kind": "works", program: string, version?: string, login: ProbeLogin, } | { "kind": "needs_login", program: string, version?: string, 
/**
 * What the user has to do.
 */
advice: string, } | { "kind": "failed", message: string, 
/**
 * What the agent or the system wrote.
 */
detail?: string, advice: string, };
export type ProbeLogin = { "kind": "gives_session", } | { "kind": "account", account: string, } | { "kind": "unknown", };
export type SessionFacts = { plan?: Array<PlanEntry>, context?: ContextUse, commands?: Array<AgentCommandInfo>, 
/**
 * Switches the agent offers: its mode, its model and others, each with its present value.
 */
options?: Array<ConfigOption>, 
/**
 * The agent's own title of the conversation.
 */
agentTitle?: string, model?: string, 
/**
 * Set while nothing has come from the agent for long although a turn runs; `0` when it speaks again.
 */
silentMs?: number, 
/**
 * One line on what the agent is doing now (a retry, a compaction); empty when it is over.
 */
activity?: string, 
/**
 * The git branch of the session's directory, or the short hash of a detached `HEAD`; empty when there is none any more.
 */
branch?: string, };
export type PlanEntry = { content: string, status: PlanStatus, };
export type PlanStatus = "pending" | "in_progress" | "completed";
export type ContextUse = { used: number, size: number, };
export type AgentCommandInfo = { name: string, description: string, hint?: string, };
export type ConfigOption = { id: string, name: string, category: ConfigCategory, value: string, choices: Array<ConfigChoice>, };
export type ConfigCategory = "mode" | "model" | "thought_level" | "other";
export type ConfigChoice = { value: string, name: string, description?: string, };
export type Origin = "user" | "agent" | "system";
export type Usage = { inputTokens: number, outputTokens: number, cacheReadInputTokens?: number, cacheCreationInputTokens?: number, 
/**
 * What this turn cost in US dollars, where the agent says so.
 */
costUsd?: number, };
export type ToolDetail = { kind: ToolKind, 
/**
 * The agent's own title for what it does, if it gave any.
 */
title?: string, 
/**
 * The command line, for kind `execute`.
 */
command?: string, locations?: Array<ToolLocation>, 
/**
 * What the call shows apart from its output text: diffs, file contents, images.
 */
content?: Array<ToolContent>, exitCode?: number, permission?: Permission, 
/**
 * The turn ended before the tool did.
 */
interrupted: boolean, startedAt?: Timestamp, endedAt?: Timestamp, };
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch_mode" | "agent" | "other";
export type ToolLocation = { path: string, line?: number, };
export type ToolContent = { "type": "diff", path: string, oldText?: string, newText: string, 
/**
 * Line of the file at which both texts begin, when they are excerpts.
 */
startLine?: number, } | { "type": "file", path: string, startLine: number, text: string, } | { "type": "image", mimeType: string, data: string, } | { "type": "text", text: string, };
export type Permission = { decision: PermissionDecision, 
/**
 * The name of the option that was chosen, in the agent's wording.
 */
option?: string, };
export type PermissionDecision = "allowed_automatically" | "allowed_once" | "allowed_always" | "rejected" | "cancelled";
export type UpsertStatus = "create" | "update" | "complete" | "error";
export type UpsertBody = { "type": "message", content: string, origin: Origin, } | { "type": "thinking", content: string, providerId: string, } | { "type": "tool_call", toolName: string, toolArguments: Record<string, unknown>, callId: CallId, toolOutput?: string, toolOutputIsError?: boolean, tool?: ToolDetail, };
export type UpsertView = { 
/**
 * UTF-16 offset at which `content` (or `toolOutput`) continues what the page already has.
 */
contentFrom?: number, blocks?: BlockPatch, 
/**
 * Rendered forms of a tool call's contents (diffs, files, images), whole each time they change.
 */
sections?: Array<ToolSection>, };
export type BlockPatch = { from: number, keep: number, html: string[], };
export type ToolSection = { kind: SectionKind, path?: string, html: string, added?: number, removed?: number, 
/**
 * Lines left out of `html`; the whole comes by `session:output`.
 */
cutLines?: number, };
export type SectionKind = "diff" | "file" | "image" | "text";
export type Upsert = { turnId: TurnId, 
/**
 * Always there in the plain contract. On a `view` socket an `update` leaves it out: the message around it has it.
 */
sessionId?: SessionId, itemId: ItemId, 
/**
 * Like `session_id`, not sent again in an `update` on a `view` socket; so is `emitted_at`. Left out, too, where an
 * agent's history does not say when it was: no time is shown rather than a false one.
 */
sourceTimestamp?: Timestamp, emittedAt?: Timestamp, status: UpsertStatus, errorCode?: string, errorMessage?: string, 
/**
 * The tool call this item belongs to, when a sub-agent speaks.
 */
parentItemId?: ItemId, } & ({ "type": "message", content: string, origin: Origin, } | { "type": "thinking", content: string, providerId: string, } | { "type": "tool_call", toolName: string, toolArguments: Record<string, unknown>, callId: CallId, toolOutput?: string, toolOutputIsError?: boolean, tool?: ToolDetail, }) & { 
/**
 * UTF-16 offset at which `content` (or `toolOutput`) continues what the page already has.
 */
contentFrom?: number, blocks?: BlockPatch, 
/**
 * Rendered forms of a tool call's contents (diffs, files, images), whole each time they change.
 */
sections?: Array<ToolSection>, };
export type TurnStatus = "completed" | "cancelled";
export type TurnEvent = { "type": "turn_started", turnId: TurnId, sessionId: SessionId, modelId: string, providerId: string, at: Timestamp, } | { "type": "turn_complete", turnId: TurnId, sessionId: SessionId, status: TurnStatus, usage?: Usage, at: Timestamp, } | { "type": "turn_error", turnId: TurnId, sessionId: SessionId, errorCode: string, errorMessage: string, at: Timestamp, };
export type ErrorMessage = { code: ErrorCode, message: string, field?: string, 
/**
 * What the agent or the system reported, for those who want to know more.
 */
detail?: string, sessionId?: SessionId, cliType?: CliType, 
/**
 * The command that installs the missing program.
 */
installHint?: string, };
export type ClientMessage = { "type": "project:list", } | { "type": "project:add", path: string, } | { "type": "project:remove", projectId: ProjectId, } | { "type": "project:restore", projectId: ProjectId, } | { "type": "project:set-defaults", projectId: ProjectId, defaults?: ProjectDefaults, } | { "type": "project:open-in", projectId: ProjectId, target: OpenTarget, } | { "type": "session:list", projectId: ProjectId, } | { "type": "session:create", projectId: ProjectId, cliType: CliType, } | { "type": "session:open", sessionId: SessionId, since?: number, epoch?: number, journalId?: string, } | { "type": "session:leave", sessionId: SessionId, } | { "type": "session:send", sessionId: SessionId, content: string, } | { "type": "session:cancel", sessionId: SessionId, } | { "type": "session:archive", sessionId: SessionId, } | { "type": "session:restore", sessionId: SessionId, } | { "type": "session:rename", sessionId: SessionId, title: string, } | { "type": "session:page", sessionId: SessionId, before: ItemId, limit: number, } | { "type": "session:seen", sessionId: SessionId, } | { "type": "session:output", sessionId: SessionId, itemId: ItemId, } | { "type": "session:set-option", sessionId: SessionId, optionId: string, value: string, } | { "type": "session:reconnect", cliType: CliType, sessionId?: SessionId, } | { "type": "session:open-in", sessionId: SessionId, target: OpenTarget, } | { "type": "settings:get", } | { "type": "settings:set", editor?: string, terminal?: string, } | { "type": "path:complete", prefix: string, } | { "type": "path:recent", } | { "type": "agent:list", } | { "type": "agent:config", } | { "type": "agent:save", revision: string, replaces?: string, definition: AgentDefinition, } | { "type": "agent:remove", revision: string, name: string, } | { "type": "agent:probe", cliType: CliType, } | { "type": "agent:probe-definition", definition: AgentDefinition, };
export type ServerMessage = { "type": "server:hello", version: string, 
/**
 * Changes with every start of the server.
 */
instance: string, 
/**
 * The user's home directory, so that paths can be shown short.
 */
home: string, 
/**
 * What the user should know about the data directory, such as a damaged file that was set aside.
 */
notices: Array<string>, 
/**
 * The server's machine has a display, so that an editor or a terminal can be shown there.
 */
hasDisplay: boolean, } | { "type": "server:notices", notices: Array<string>, } | { "type": "project:list", projects: Array<Project>, } | { "type": "project:added", project: Project, } | { "type": "project:updated", project: Project, } | { "type": "project:removed", projectId: ProjectId, } | { "type": "session:list", projectId: ProjectId, sessions: Array<SessionSummary>, } | { "type": "session:created", sessionId: SessionId, projectId: ProjectId, session: SessionSummary, } | { "type": "session:history", sessionId: SessionId, entries: Array<Upsert>, 
/**
 * Names the journal that `seq` counts in.
 */
journalId: string, 
/**
 * Rises whenever a server takes the session over.
 */
epoch: number, seq: number, 
/**
 * There are older items, to be had by `session:page`.
 */
more: boolean, since?: number, turns: Array<TurnRecord>, facts: SessionFacts, session: SessionSummary, } | { "type": "session:upsert", sessionId: SessionId, seq: number, payload: Upsert, } | { "type": "session:turn", sessionId: SessionId, seq: number, payload: TurnEvent, 
/**
 * False if the journal could not record it.
 */
recorded?: boolean, } | { "type": "session:page", sessionId: SessionId, entries: Array<Upsert>, more: boolean, turns: Array<TurnRecord>, } | { "type": "session:output", sessionId: SessionId, itemId: ItemId, html: Array<string>, } | { "type": "session:archived", sessionId: SessionId, } | { "type": "session:restored", sessionId: SessionId, session: SessionSummary, } | { "type": "session:title-updated", sessionId: SessionId, title: string, } | { "type": "session:state", sessionId: SessionId, lastActiveAt: Timestamp, attention: Attention, 
/**
 * One short line: what is asked, or what went wrong.
 */
reason?: string, continuity: Continuity, 
/**
 * It is disconnected because its agent, which runs, did not stop when asked to. A restart fixes that.
 */
hangs?: boolean, 
/**
 * When the present attention began.
 */
since?: Timestamp, } | { "type": "session:facts", sessionId: SessionId, facts: SessionFacts, } | { "type": "settings:current", settings: ServerSettings, } | { "type": "path:completions", prefix: string, paths: Array<PathCompletion>, } | { "type": "path:recents", directories: Array<RecentDirectory>, } | { "type": "agent:list", agents: Array<AgentInfo>, } | { "type": "agent:config", config: AgentConfig, } | { "type": "agent:probed", outcome: ProbeOutcome, } | { "type": "agent:status", cliType: CliType, sessionId?: SessionId, status: AgentStatus, 
/**
 * While it reconnects: which try this is, of how many, and when the next one starts.
 */
attempt?: number, attemptsMax?: number, retryInMs?: number, 
/**
 * The end of what the agent wrote to its standard error, when it was lost.
 */
detail?: string, } | { "type": "ack", } | { "type": "error" } & ErrorMessage;
