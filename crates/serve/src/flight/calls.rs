//! The calls of Flight SQL. Each finds out who calls before it does anything.

use std::pin::Pin;
use std::sync::Arc;

use arrow_flight::error::FlightError;
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any,
    CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys,
    CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes,
    CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo,
    TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    HandshakeResponse, PutResult, Result as ActionResult, Ticket,
};
use coload_link::LOAD_COMMAND;
use coload_receive::Need;
use coload_types::Error;
use datafusion::arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use super::cancel::{self, CANCEL_FLIGHT_INFO};
use super::door::Visit;
use super::inbound::Inbound;
use super::ingest::ingest;
use super::metadata;
use super::prepared::schema_bytes;
use super::service::{Rows, Served, Service};
use super::status::{cancelled, status};
use super::tickets::{self};
use super::wire_types::{parameter_schema, wire_schema};
use crate::cluster::QUESTION_TYPE;
use crate::rights::Role;
use crate::statement::Parameters;
use crate::statement::bind::insert_rows;

/// Where the rows of a command are to be had: here, with the command as ticket.
fn info(
    command: &impl ProstMessageExt,
    schema: &ArrowSchema,
    descriptor: FlightDescriptor,
) -> Served<Response<FlightInfo>> {
    let ticket = Ticket::new(command.as_any().encode_to_vec());
    let info = FlightInfo::new()
        .try_with_schema(schema)
        .map_err(|e| status(metadata::broken(&e)))?
        .with_endpoint(FlightEndpoint::new().with_ticket(ticket))
        .with_descriptor(descriptor)
        .with_ordered(true);
    Ok(Response::new(info))
}

fn built<T>(made: &Result<T, FlightError>) -> Served<&T> {
    made.as_ref().map_err(|e| status(metadata::broken(e)))
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Service;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Served<Response<Pin<Box<dyn Stream<Item = Served<HandshakeResponse>> + Send>>>> {
        let visit = request.extensions().get::<Arc<Visit>>().cloned();
        let visit = visit.ok_or_else(|| Status::internal("a call without a connection"))?;
        let header = request.metadata().get("authorization").and_then(|h| h.to_str().ok());
        let token = self.shared.users.log_in(visit.peer(), header).await.inspect_err(|_| {
            visit.was_refused();
            self.shared.metrics.calls_refused.inc();
        })?;
        visit.admit()?;
        let answer = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let rows: Pin<Box<dyn Stream<Item = _> + Send>> =
            Box::pin(futures::stream::iter([Ok(answer)]));
        let mut response = Response::new(rows);
        let header = format!("Bearer {token}").parse();
        let header = header.map_err(|_| Status::internal("a token that is no header"))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        let rights = self.caller(&request)?;
        let planned = self.plan(&rights, &query.query, Parameters::default()).await?;
        let schema = wire_schema(planned.schema());
        let handle = match planned.writes() {
            true => self.write_now(&rights, &query.query, planned).await?,
            false => self.shared.plans.put(&rights, &query.query, planned).map_err(status)?,
        };
        info(&TicketStatementQuery { statement_handle: handle }, &schema, request.into_inner())
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        let rights = self.caller(&request)?;
        // Before the plan is taken, so that who cancels finds the one or the other.
        let place = self.shared.running.add(ticket.statement_handle.clone(), rights.user());
        match self.shared.plans.take(&rights, &ticket.statement_handle).map_err(status)? {
            tickets::Ticket::Query(Some(planned), text) => {
                self.run(&rights, text, *planned, place).await
            }
            tickets::Ticket::Query(None, text) => {
                let planned = self.plan(&rights, &text, Parameters::default()).await?;
                if planned.writes() {
                    return Err(Status::invalid_argument("not a ticket of a query"));
                }
                self.run(&rights, text, planned, place).await
            }
            tickets::Ticket::Cancelled => Err(cancelled()),
            tickets::Ticket::Written(Some(rows)) => {
                self.catalog_rows(crate::statement::count_batch(rows))
            }
            tickets::Ticket::Written(None) => {
                let none = RecordBatch::new_empty(Arc::new(ArrowSchema::empty()));
                self.catalog_rows(Ok(none))
            }
        }
    }

    async fn do_get_fallback(
        &self,
        request: Request<Ticket>,
        message: Any,
    ) -> Served<Response<Rows>> {
        let rights = self.caller(&request)?;
        match message.type_url.as_str() {
            QUESTION_TYPE => self.rows_for_node(&rights, &message.value).await,
            other => Err(Status::invalid_argument(format!("a ticket of type {other}"))),
        }
    }

    async fn do_put_error_callback(
        &self,
        _: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Served<Response<BoxStream<'static, Served<PutResult>>>> {
        Err(Status::invalid_argument(match error {
            DoPutError::MissingCommand => {
                "the client sent nothing: some drivers do so for an ingest without rows"
            }
            DoPutError::MissingFlightDescriptor => {
                "the client did not say what to do with its rows"
            }
        }))
    }

    async fn do_put_statement_update(
        &self,
        command: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Served<i64> {
        let rights = self.caller(&request)?;
        let planned = self.plan(&rights, &command.query, Parameters::default()).await?;
        self.update(&rights, &command.query, planned).await
    }

    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Served<i64> {
        let rights = self.caller(&request)?;
        let work = async {
            let inbound = Inbound::open(request.into_inner()).await?;
            ingest(&self.shared.database, &rights, &command, inbound).await
        };
        self.write(&rights, &format!("ingest into {}", command.table), work).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Served<ActionCreatePreparedStatementResult> {
        let rights = self.caller(&request)?;
        if query.transaction_id.is_some() {
            return Err(Status::invalid_argument("transactions are not supported"));
        }
        let planned = self.plan(&rights, &query.query, Parameters::default()).await?;
        let handle = self.shared.prepared.put(&rights, &query.query).map_err(status)?;
        // Drivers take a statement without columns for one that writes.
        let dataset = match planned.writes() {
            true => Arc::new(ArrowSchema::empty()),
            false => wire_schema(planned.schema()),
        };
        let parameters = parameter_schema(planned.parameters());
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle.to_vec().into(),
            dataset_schema: schema_bytes(&dataset).map_err(status)?,
            parameter_schema: schema_bytes(&parameters).map_err(status)?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Served<()> {
        let rights = self.caller(&request)?;
        self.shared.prepared.close(&rights, &query.prepared_statement_handle);
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Served<DoPutPreparedStatementResult> {
        let rights = self.caller(&request)?;
        let inbound = Inbound::open(request.into_inner()).await.map_err(status)?;
        let handle = query.prepared_statement_handle;
        self.shared.prepared.bind(&rights, &handle, inbound).await.map_err(status)?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        let rights = self.caller(&request)?;
        let handle = &query.prepared_statement_handle;
        let bound = self.shared.prepared.get(&rights, handle).map_err(status)?;
        let planned = self.plan_bound(&rights, &bound).await?;
        let schema = wire_schema(planned.schema());
        if !planned.writes() {
            bound.parameters().map_err(status)?;
            return info(&query, &schema, request.into_inner());
        }
        let handle = if bound.rows() > 1 {
            let work = self.insert_bound(&rights, &bound);
            let rows = self.write(&rights, &bound.text, work).await?;
            tickets::written(Some(rows.unsigned_abs()))
        } else {
            self.write_now(&rights, &bound.text, planned).await?
        };
        info(&TicketStatementQuery { statement_handle: handle }, &schema, request.into_inner())
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        let rights = self.caller(&request)?;
        let handle = &query.prepared_statement_handle;
        let bound = self.shared.prepared.get(&rights, handle).map_err(status)?;
        let values = bound.parameters().map_err(status)?;
        let planned = self.plan(&rights, &bound.text, values).await?;
        if planned.writes() {
            return Err(Status::invalid_argument("not a ticket of a query"));
        }
        let place = self.shared.running.add(handle.clone(), rights.user());
        self.run(&rights, bound.text.to_string(), planned, place).await
    }

    async fn do_put_prepared_statement_update(
        &self,
        command: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Served<i64> {
        let rights = self.caller(&request)?;
        let handle = command.prepared_statement_handle;
        let bound = self.shared.prepared.get(&rights, &handle).map_err(status)?;
        let planned = self.plan(&rights, &bound.text, Parameters::default()).await?;
        if planned.parameters().fields().is_empty() {
            return self.update(&rights, &bound.text, planned).await;
        }
        let text = Arc::clone(&bound.text);
        let work = async {
            // JDBC sends the values with the command, others have bound them before.
            let inbound = Inbound::open(request.into_inner()).await;
            let (caller, bound) = (rights.clone(), bound.clone());
            match inbound {
                Ok(inbound) if !inbound.schema().fields().is_empty() => {
                    inbound
                        .feed(&self.shared.database, rights.user(), |database, rows| async move {
                            insert_rows(&database, &caller, &bound.text, rows).await
                        })
                        .await
                }
                _ if bound.rows() == 0 => {
                    Err(Error::Invalid("the statement has parameters, and none has a value".into()))
                }
                _ => self.insert_bound(&rights, &bound).await,
            }
        };
        self.write(&rights, &text, work).await
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &query.into_builder().schema(), request.into_inner())
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        self.catalog_rows(metadata::catalogs(query))
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &query.clone().into_builder().schema(), request.into_inner())
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        self.catalog_rows(metadata::schemas(query))
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &query.clone().into_builder().schema(), request.into_inner())
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        let rights = self.caller(&request)?;
        let (snapshot, _) = self.shared.database.newest().map_err(status)?;
        self.catalog_rows(metadata::tables(query, &snapshot, &rights))
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &query.into_builder().schema(), request.into_inner())
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        let mut builder = query.into_builder();
        builder.append(metadata::TABLE_TYPE);
        self.catalog_rows(builder.build().map_err(|e| metadata::broken(&e)))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        let schema: SchemaRef = built(&metadata::SQL_INFO)?.schema();
        info(&query, &schema, request.into_inner())
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        let rows = query.into_builder(built(&metadata::SQL_INFO)?).build();
        self.catalog_rows(rows.map_err(|e| metadata::broken(&e)))
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        let schema = built(&metadata::TYPE_INFO)?.schema();
        info(&query, &schema, request.into_inner())
    }

    async fn do_get_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        let rows = query.into_builder(built(&metadata::TYPE_INFO)?).build();
        self.catalog_rows(rows.map_err(|e| metadata::broken(&e)))
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &metadata::PRIMARY_KEYS, request.into_inner())
    }

    async fn do_get_primary_keys(
        &self,
        _: CommandGetPrimaryKeys,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        self.catalog_rows(Ok(RecordBatch::new_empty(Arc::clone(&metadata::PRIMARY_KEYS))))
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &metadata::FOREIGN_KEYS, request.into_inner())
    }

    async fn do_get_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        self.catalog_rows(Ok(RecordBatch::new_empty(Arc::clone(&metadata::FOREIGN_KEYS))))
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &metadata::FOREIGN_KEYS, request.into_inner())
    }

    async fn do_get_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        self.catalog_rows(Ok(RecordBatch::new_empty(Arc::clone(&metadata::FOREIGN_KEYS))))
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.caller(&request)?;
        info(&query, &metadata::FOREIGN_KEYS, request.into_inner())
    }

    async fn do_get_cross_reference(
        &self,
        _: CommandGetCrossReference,
        request: Request<Ticket>,
    ) -> Served<Response<Rows>> {
        self.caller(&request)?;
        self.catalog_rows(Ok(RecordBatch::new_empty(Arc::clone(&metadata::FOREIGN_KEYS))))
    }

    /// Loads of our own client; Flight SQL has no exchange.
    async fn do_exchange_fallback(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Served<Response<Rows>> {
        let rights = self.caller(&request)?;
        let mut messages = request.into_inner().peekable();
        let command = match Pin::new(&mut messages).peek().await {
            Some(Ok(first)) => first.flight_descriptor.as_ref().map(|d| d.cmd.clone()),
            Some(Err(status)) => return Err(status.clone()),
            None => None,
        };
        if !command.is_some_and(|c| c.starts_with(LOAD_COMMAND.as_bytes())) {
            return Err(Status::unimplemented("the only exchange is that of loads"));
        }
        let open = self.shared.metrics.load_opened();
        let may = Arc::new(move |table: &str, need| {
            let role = match need {
                Need::See => Role::Read,
                Need::Add => Role::Load,
                Need::Replace => Role::Admin,
            };
            rights.require(role, table)
        });
        let answers = self.shared.loads.exchange(messages, may);
        Ok(Response::new(answers.inspect(move |_| open.stay()).boxed()))
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Served<ActionCancelQueryResult> {
        let rights = self.caller(&request)?;
        self.cancel_query(&rights, &query).await
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Served<Response<BoxStream<'static, Served<ActionResult>>>> {
        let rights = self.caller(&request)?;
        let action = request.get_ref();
        if action.r#type != CANCEL_FLIGHT_INFO {
            let text = format!("no action {:?}; ListActions tells which there are", action.r#type);
            return Err(Status::unimplemented(text));
        }
        let result = self.cancel_flight_info(&rights, action).await?;
        let result = ActionResult { body: result.encode_to_vec().into() };
        Ok(Response::new(futures::stream::iter([Ok(result)]).boxed()))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Served<ActionType>>> {
        Some(vec![Ok(cancel::action_type())])
    }

    /// All there is to tell is made at once, from [`metadata::SQL_INFO`].
    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
