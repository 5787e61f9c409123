//! Approvals: what was asked, and decisions.

use std::sync::Arc;

use kitport::bubblepaw::wire::{ApprovalDecide, ApprovalList, ApprovalListResult, EventData};

use super::request::Request;
use super::{nothing, result};
use crate::failure::{Failure, Outcome};
use crate::host::Host;

pub(super) fn list(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ApprovalList>()?;
    let approvals = host.read(|tx| {
        let num = tx.row(&asked.session_id)?.num;
        Ok(tx.store.approvals(num)?.into_iter().map(|row| row.approval).collect())
    })?;
    result::<ApprovalList>(&ApprovalListResult { approvals })
}

pub(super) fn decide(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ApprovalDecide>()?;
    let state = match asked.decision.as_str() {
        "approve" => "approved",
        "approve_session" => "approved_session",
        "deny" => "denied",
        other => return Err(Failure::params(format!("unknown decision {other:?}"))),
    };
    host.write(|tx| {
        let row = tx.store.approval(&asked.approval_id)?;
        let mut approval =
            row.ok_or_else(|| Failure::refused(format!("unknown approval: {}", asked.approval_id)))?.approval;
        match approval.state.as_str() {
            "pending" => {}
            "expired" => return Err(Failure::refused("approval expired: its run has ended")),
            state => return Err(Failure::refused(format!("approval already decided: {state}"))),
        }
        approval.state = state.to_owned();
        approval.reason.clone_from(&asked.reason);
        tx.store.save_approval(&approval)?;
        if let ("approved_session", Some(tool)) = (state, &approval.tool) {
            tx.change(&approval.session_id)?.details.approved_tools.push(tool.clone());
        }
        let data = EventData::ApprovalResolved {
            approval_id: approval.approval_id,
            state: approval.state,
            reason: approval.reason,
        };
        tx.event(&approval.session_id, approval.run_id.as_ref(), data)
    })?;
    nothing()
}
