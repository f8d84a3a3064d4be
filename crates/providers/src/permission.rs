//! Who decides when an agent requests a permission. One small policy, so that an ask-me mode can follow.

use protocol::{Permission, PermissionDecision};

/// What an agent offers to choose from, in its own order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
    pub kind: PermissionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Unknown,
}

/// The option selected, and how it is recorded in the tool call. None is selected when none of them allows anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionChoice {
    pub selected: Option<PermissionOption>,
    pub record: Permission,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionPolicy {
    /// Viewer mode: nobody is asked, and it is allowed, this once. Never more than once, unless the agent offers
    /// nothing narrower.
    #[default]
    AllowAutomatically,
}

impl PermissionPolicy {
    /// Chooses by kind, never by position: some agents put "always" first.
    pub fn decide(self, options: &[PermissionOption]) -> PermissionChoice {
        let Self::AllowAutomatically = self;
        let of = |kind| options.iter().find(|option| option.kind == kind);
        let selected = of(PermissionKind::AllowOnce).or_else(|| of(PermissionKind::AllowAlways)).cloned();
        let decision = match selected {
            Some(_) => PermissionDecision::AllowedAutomatically,
            None => PermissionDecision::Cancelled,
        };
        let option = selected.as_ref().map(|option| option.name.clone());
        PermissionChoice { selected, record: Permission { decision, option } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(id: &str, kind: PermissionKind) -> PermissionOption {
        PermissionOption { id: id.into(), name: id.into(), kind }
    }

    #[test]
    fn a_permission_is_given_once_wherever_the_agent_puts_that_option() {
        use PermissionKind::*;
        let options = [option("always", AllowAlways), option("no", RejectOnce), option("once", AllowOnce)];
        let decision = PermissionPolicy::default().decide(&options);
        assert_eq!(decision.selected, Some(option("once", AllowOnce)));
        assert_eq!(decision.record.decision, PermissionDecision::AllowedAutomatically);
    }

    #[test]
    fn a_permission_is_never_given_by_an_option_that_is_not_an_allow() {
        use PermissionKind::*;
        let decision = PermissionPolicy::default().decide(&[option("no", RejectOnce), option("hm", Unknown)]);
        assert_eq!(decision.selected, None);
        assert_eq!(decision.record.decision, PermissionDecision::Cancelled);
    }
}
