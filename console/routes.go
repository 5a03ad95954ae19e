package console

import "github.com/pawlhq/pawl/api"

// pages maps paths below the console's to the handlers of pages.
var pages = []struct {
	path string
	page handler
}{
	{"/{$}", (*visit).overview},
	{"/find", (*visit).find},
	{"/instances", (*visit).instances},
	{"/instances/{id}", (*visit).instance},
	{"/instances/{id}/diagram", (*visit).instanceDiagram},
	{"/instances/{id}/data", (*visit).instanceData},
	{"/instances/{id}/do/{transition}", (*visit).transitionForm},
	{"/instances/{id}/{action}", (*visit).pauseForm},
	{"/bulk", (*visit).bulkForm},
	{"/workflows", (*visit).workflows},
	{"/workflows/{workflow}", (*visit).workflow},
	{"/workflows/{workflow}/diagram", (*visit).workflowDiagram},
	{"/workflows/{workflow}/do/{transition}", (*visit).transitionForm},
	{"/workflows/{workflow}/{action}", (*visit).pauseWorkflowForm},
	{"/migrations", listing[api.MigrationList]("migrations", "Migrations", "/v1/ops/migrations")},
	{"/migrations/new", (*visit).migrationForm},
	{"/migrations/{migration}/{action}", (*visit).stopMigrationForm},
	{"/commands", (*visit).commands},
	{"/stuck", listing[api.CommandPage]("stuck", "Stuck commands", "/v1/ops/stuck", "workflow", "instance", "business_key", "cursor")},
	{"/stuck/{action}", (*visit).settleForm},
	{"/paused", listing[api.PausedList]("paused", "Paused", "/v1/ops/paused", "workflow", "cursor")},
	{"/sinks", listing[api.SinkList]("sinks", "Sinks", "/v1/ops/sinks")},
	{"/sinks/{sink}", (*visit).sink},
	{"/sinks/{sink}/{action}", (*visit).sinkForm},
	{"/messages", listing[api.DeadMessagePage]("messages", "Dead messages", "/v1/ops/inbox",
		"consumer", "status", "workflow", "business_key", "cursor")},
	{"/messages/body", (*visit).messageBody},
	{"/messages/{action}", (*visit).messageForm},
	{"/log", (*visit).log},
	{"/keys", listing[api.APIKeyPage]("keys", "API keys", "/v1/keys", "cursor")},
	{"/keys/new", (*visit).newKeyForm},
	{"/keys/{key}/{action}", (*visit).keyForm},
	{"/me", (*visit).account},
	{"/live", (*visit).live},
}

// actions maps the paths of forms to their handlers.
var actions = []struct {
	path string
	do   handler
}{
	{"/sign-out", (*visit).signOut},
	{"/instances/{id}/do/{transition}", (*visit).transition},
	{"/instances/{id}/{action}", (*visit).pause},
	{"/bulk", (*visit).bulk},
	{"/workflows/{workflow}/do/{transition}", (*visit).transition},
	{"/workflows/{workflow}/{action}", (*visit).pauseWorkflow},
	{"/migrations/new", (*visit).startMigration},
	{"/migrations/{migration}/{action}", (*visit).stopMigration},
	{"/commands/cancel", (*visit).cancelCommand},
	{"/stuck/{action}", (*visit).settle},
	{"/sinks/{sink}/{action}", (*visit).changeSink},
	{"/messages/{action}", (*visit).changeMessage},
	{"/keys/new", (*visit).newKey},
	{"/keys/{key}/{action}", (*visit).changeKey},
}
