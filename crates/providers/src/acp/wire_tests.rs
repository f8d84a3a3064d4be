use super::*;

#[test]
fn a_frame_is_what_its_fields_say() {
    assert!(matches!(
        read(r#"{"id":0,"method":"fs/read_text_file","params":{"a":1}}"#).unwrap(),
        RpcMessage::Request { id, method, params } if id.get() == "0" && method == "fs/read_text_file" && params == r#"{"a":1}"#
    ));
    assert!(matches!(read(r#"{"method":"session/update"}"#).unwrap(), RpcMessage::Notification { params: "null", .. }));
    assert!(matches!(
        read(r#"{"result":{"x":[1]},"id":3,"jsonrpc":"2.0","new":true}"#).unwrap(),
        RpcMessage::Response { id: Some(3), outcome: Ok(r#"{"x":[1]}"#) }
    ));
    assert!(matches!(
        read(r#"{"id":3,"result":null}"#).unwrap(),
        RpcMessage::Response { id: Some(3), outcome: Ok("null") }
    ));
}

#[test]
fn ids_may_be_strings_and_an_answer_to_a_line_nobody_could_read_has_none() {
    assert!(matches!(read(r#"{"id":"7","result":{}}"#).unwrap(), RpcMessage::Response { id: Some(7), .. }));
    assert!(matches!(
        read(r#"{"id":"a-b","method":"x"}"#).unwrap(),
        RpcMessage::Request { id, .. } if id.get() == r#""a-b""#
    ));
    let lines = [r#"{"id":null,"error":{"code":-32700,"message":"Parse error"}}"#, r#"{"error":{"code":-32700}}"#];
    for line in lines {
        assert!(matches!(read(line).unwrap(), RpcMessage::Response { id: None, outcome: Err(_) }), "{line}");
    }
}

#[test]
fn noise_is_an_error_and_never_more() {
    for line in ["", "hello", "[1]", "[1,2]", "[]", "{}", "3", "null", "\"x\"", r#"{"id":1"#, "{\"method\":7}", "\u{0}"]
    {
        assert!(read(line).is_err(), "{line:?}");
    }
}

#[test]
fn an_unknown_update_is_kept_as_such() {
    let check = |text: &str, expected: &str| {
        assert!(matches!(Update::read(text), Update::Unknown { kind, .. } if kind == expected), "{text}");
    };
    check(r#"{"sessionUpdate":"state_update","state":"idle"}"#, "state_update");
    check(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram"}}"#, "agent_message_chunk");
    check(r#"{"nothing":1}"#, "");
}

#[test]
fn unknown_values_inside_a_known_update_do_not_lose_it() {
    let text = r#"{"sessionUpdate":"tool_call","toolCallId":"a","title":"t","kind":"dance","status":"resting",
        "content":[{"type":"hologram"},{"type":"diff","path":"/a","newText":"x"}],"future":1}"#;
    let Update::ToolCall(call) = Update::read(text) else { panic!("not a tool call") };
    assert_eq!(call.fields.kind, Some(acp::ToolKind::Other));
    assert_eq!(call.fields.status, None);
    assert_eq!(call.fields.content.unwrap().len(), 1);
}

#[test]
fn an_errors_message_is_the_part_that_explains_it() {
    let check = |error: &str, expected: &str| {
        assert_eq!(serde_json::from_str::<RpcError>(error).unwrap().text(), expected);
    };
    check(
        r#"{"code":-32002,"message":"Session nope not found","data":{"sessionId":"nope"}}"#,
        "Session nope not found",
    );
    check(
        r#"{"code":-32603,"message":"Internal error","data":{"details":"no rollout found for thread id 1"}}"#,
        "no rollout found for thread id 1",
    );
    check(
        r#"{"code":-32603,"message":"Internal error","data":{"message":"{\"error\": {\"message\": \"fake error 400\"}}"}}"#,
        "fake error 400",
    );
    check(r#"{"code":-32603,"message":"Internal error: API Error: 400"}"#, "API Error: 400");
    check(r#"{"code":-32603,"message":"Internal error"}"#, "Internal error");
    check(r#"{"code":-5}"#, "error -5");
}

#[test]
fn what_is_written_is_one_line() {
    let line = request(4, "session/prompt", &serde_json::json!({"text": "a\nb"})).unwrap();
    assert_eq!(line, r#"{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"text":"a\nb"}}"#);
    let id = RawValue::from_string("\"x\"".into()).unwrap();
    assert_eq!(response(&id, &Ok(())).unwrap(), r#"{"jsonrpc":"2.0","id":"x","result":null}"#);
    let refused: Result<(), _> = Err(RpcError::new(METHOD_NOT_FOUND, "no"));
    assert_eq!(
        response(&id, &refused).unwrap(),
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no"}}"#
    );
}
