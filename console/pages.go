package console

// pages are all that there are, by their path below the console's.
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
	{"/instances/{id}/pause", (*visit).pauseForm},
	{"/instances/{id}/resume", (*visit).pauseForm},
	{"/bulk", (*visit).bulkForm},
	{"/workflows", (*visit).workflows},
	{"/workflows/{workflow}", (*visit).workflow},
	{"/workflows/{workflow}/diagram", (*visit).workflowDiagram},
	{"/workflows/{workflow}/do/{transition}", (*visit).transitionForm},
	{"/workflows/{workflow}/pause", (*visit).pauseWorkflowForm},
	{"/workflows/{workflow}/resume", (*visit).pauseWorkflowForm},
	{"/migrations", (*visit).migrations},
	{"/migrations/new", (*visit).migrationForm},
	{"/migrations/{migration}/stop", (*visit).stopMigrationForm},
	{"/commands", (*visit).commands},
	{"/stuck", (*visit).stuck},
	{"/paused", (*visit).paused},
	{"/stuck/{action}", (*visit).settleForm},
	{"/sinks", (*visit).sinks},
	{"/sinks/{sink}", (*visit).sink},
	{"/sinks/{sink}/{action}", (*visit).sinkForm},
	{"/messages", (*visit).messages},
	{"/messages/body", (*visit).messageBody},
	{"/messages/{action}", (*visit).messageForm},
	{"/log", (*visit).log},
	{"/keys", (*visit).keys},
	{"/keys/new", (*visit).newKeyForm},
	{"/keys/{key}/{action}", (*visit).keyForm},
	{"/me", (*visit).account},
	{"/live", (*visit).live},
}

// actions are all that can be done, by the path of their form.
var actions = []struct {
	path string
	do   handler
}{
	{"/sign-out", (*visit).signOut},
	{"/instances/{id}/do/{transition}", (*visit).transition},
	{"/instances/{id}/pause", (*visit).pause},
	{"/instances/{id}/resume", (*visit).pause},
	{"/bulk", (*visit).bulk},
	{"/workflows/{workflow}/do/{transition}", (*visit).transition},
	{"/workflows/{workflow}/pause", (*visit).pauseWorkflow},
	{"/workflows/{workflow}/resume", (*visit).pauseWorkflow},
	{"/migrations/new", (*visit).beginMigration},
	{"/migrations/{migration}/stop", (*visit).stopMigration},
	{"/commands/cancel", (*visit).cancelCommand},
	{"/stuck/{action}", (*visit).settle},
	{"/sinks/{sink}/{action}", (*visit).changeSink},
	{"/messages/{action}", (*visit).changeMessage},
	{"/keys/new", (*visit).newKey},
	{"/keys/{key}/{action}", (*visit).changeKey},
}
