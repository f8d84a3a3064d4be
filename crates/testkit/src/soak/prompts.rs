//! The prompts of the soak test, and the output expected for each.

/// One prompt.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) prompt: String,
    /// The whole answer, if it lives.
    pub(super) text: String,
    /// It waits to be cancelled once the text is sent.
    pub(super) is_held: bool,
}

/// After which the agent knows of its session.
pub(super) fn first() -> Scene {
    let mut scene = Scene { prompt: String::new(), text: "hello".into(), is_held: false };
    scene.step("say:hello");
    scene
}

/// What any agent may be asked.
pub(super) fn steady(random: &mut fastrand::Rng) -> Scene {
    let mut scene = Scene { prompt: String::new(), text: String::new(), is_held: false };
    for _ in 0..random.usize(1..4) {
        match random.u8(..9) {
            0 => scene.step("think:let me see"),
            1 => scene.step(&format!("garbage:{}", random.usize(1..200))),
            2 => {
                scene.step("strange");
                // What it was answered.
                scene.text += "dance: -32601, read: -32602";
            }
            3 => {
                let call = random.u32(..);
                scene.step(&format!("call:c{call} ls"));
                scene.step(&format!("output:c{call} {}", "o".repeat(random.usize(1..5000))));
                scene.step(&format!("done:c{call} {}", random.u8(..2)));
            }
            4 => scene.step("plan:first,second"),
            5 => {
                let pieces = random.usize(1..3000);
                scene.step(&format!("flood:{pieces}"));
                scene.text += &"12345678 ".repeat(pieces);
            }
            6 => {
                let length = random.usize(1..300_000);
                scene.step(&format!("huge:{length}"));
                scene.text += &"x".repeat(length);
            }
            _ => {}
        }
        let text = format!("**{}** `{}` <b>é\u{1f980}", random.u32(..), random.u32(..));
        scene.step(&format!("say:{text}"));
        scene.text += &text;
    }
    match random.u8(..8) {
        0 => {
            scene.step("hold:never");
            scene.is_held = true;
        }
        1 => scene.step("error:out of luck"),
        _ => {}
    }
    scene
}

/// What may be the end of the agent.
pub(super) fn wild(random: &mut fastrand::Rng) -> Scene {
    let mut scene = steady(random);
    if !scene.is_held && random.u8(..6) == 0 {
        scene.step(["exit:3", "close", "big-flood:4\nexit:0"][random.usize(..3)]);
        // Then nobody ends the prompt, or the text of the flood comes too: a beginning of all that is enough.
        scene.text += &"x".repeat(4 << 20);
    }
    scene
}

impl Scene {
    /// In short, for a message.
    pub(super) fn steps(&self) -> Vec<&str> {
        self.prompt.lines().map(|line| line.get(..24).unwrap_or(line)).collect()
    }

    fn step(&mut self, line: &str) {
        self.prompt += line;
        self.prompt.push('\n');
    }
}
