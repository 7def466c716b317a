//! `CancelFlightInfo`, and `CancelQuery`, which it replaces: a client brings back what GetFlightInfo gave
//! it, and the statement of its ticket ends.
//!
//! A query that runs ends with the status CANCELLED. A plan that waits is dropped, and its ticket is
//! refused as long as the plan would have waited. A statement that writes is done before its client has
//! a ticket, so that there is nothing to cancel.

use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, Any, Command, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo,
};
use prost::Message;
use tonic::Status;

use super::running::Cancelled;
use super::service::{Served, Service};
use super::status::status;
use super::tickets;
use crate::rights::Rights;

/// The action of Flight.
pub(super) const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";

/// How the list of actions tells of it.
pub(super) fn action_type() -> ActionType {
    ActionType {
        r#type: CANCEL_FLIGHT_INFO.into(),
        description: "Cancels a query\n\
                      Request Message: CancelFlightInfoRequest\n\
                      Response Message: CancelFlightInfoResult"
            .into(),
    }
}

impl Service {
    pub(super) async fn cancel_flight_info(
        &self,
        rights: &Rights,
        action: &Action,
    ) -> Served<CancelFlightInfoResult> {
        let request = CancelFlightInfoRequest::decode(&*action.body)
            .map_err(|_| Status::invalid_argument("not a CancelFlightInfoRequest"))?;
        let info = request
            .info
            .ok_or_else(|| Status::invalid_argument("the request does not say what to cancel"))?;
        Ok(CancelFlightInfoResult::new(self.cancel(rights, info).await?))
    }

    /// Answers `CancelQuery`, the forerunner of `CancelFlightInfo`.
    pub(super) async fn cancel_query(
        &self,
        rights: &Rights,
        request: &ActionCancelQueryRequest,
    ) -> Served<ActionCancelQueryResult> {
        let info = FlightInfo::decode(&*request.info)
            .map_err(|_| Status::invalid_argument("not a FlightInfo"))?;
        // Its results have the numbers of those that came after them.
        let result = self.cancel(rights, info).await?.into();
        Ok(ActionCancelQueryResult { result })
    }

    async fn cancel(&self, rights: &Rights, info: FlightInfo) -> Served<CancelStatus> {
        let (handle, waited) = match command(info)? {
            Command::TicketStatementQuery(TicketStatementQuery { statement_handle: handle }) => {
                if tickets::is_written(&handle) {
                    return Ok(CancelStatus::NotCancellable);
                }
                let waited = self.shared.plans.cancel(rights, &handle).map_err(status)?;
                (handle, waited)
            }
            Command::CommandPreparedStatementQuery(query) => {
                (query.prepared_statement_handle, false)
            }
            // What drivers ask about tables is answered at once.
            _ => return Ok(CancelStatus::NotCancellable),
        };
        match self.shared.running.cancel(&handle, rights.user()).await {
            Cancelled::Ended => Ok(CancelStatus::Cancelled),
            Cancelled::Told => Ok(CancelStatus::Cancelling),
            Cancelled::Unknown if waited => Ok(CancelStatus::Cancelled),
            Cancelled::Unknown => {
                Err(Status::not_found("no such statement runs: it is done, or was never here"))
            }
        }
    }
}

/// What the ticket of an answer of this server asks for.
fn command(info: FlightInfo) -> Served<Command> {
    let not_ours = || Status::invalid_argument("not a FlightInfo of this server");
    let [endpoint] = <[_; 1]>::try_from(info.endpoint).map_err(|_| not_ours())?;
    let ticket = endpoint.ticket.ok_or_else(not_ours)?;
    let any = Any::decode(&*ticket.ticket).map_err(|_| not_ours())?;
    Command::try_from(any).map_err(|_| not_ours())
}
