package workflow

// CodeInfo is a row of the error table.
type CodeInfo struct {
	Code     Code
	Status   int    // the HTTP status
	SQLState string // the SQLSTATE that the SQL functions raise, "" where they cannot
	Final    bool   // stored with the key and replayed
	Retry    bool   // the same request with the same key may succeed later
	Meaning  string
}

// Codes is the error table: every code, once.
var Codes = []CodeInfo{
	{InvalidRequest, 400, "", false, false, "the request itself is malformed"},
	{InvalidPayload, 400, "", false, false, "the payload does not fit the transition; the fields are named"},
	{KeyMissing, 400, "P4001", false, false, "the idempotency key is missing"},
	{KeyInvalid, 400, "P4001", false, false, "the idempotency key is too long or has characters that cannot be stored"},
	{ScopeMissing, 400, "P4000", false, false, "the idempotency scope is empty"},
	{ScopeInvalid, 400, "P4000", false, false, "the idempotency scope is too long or has characters that cannot be stored"},
	{HashMissing, 400, "P4003", false, false, "the request hash is missing or is not 32 bytes"},
	{Unauthorized, 401, "", false, false, "the caller is not known"},
	{Forbidden, 403, "", false, false, "the caller lacks the required grant"},
	{RoleRequired, 403, "", false, false, "the caller has none of the roles that the transition requires"},
	{SeparationOfDuties, 403, "", false, false, "the caller did an earlier step that excludes this one"},
	{CredentialEnded, 403, "", true, false, "the credential that scheduled the command was no longer valid when the command was due"},
	{NotFound, 404, "", false, false, "there is nothing at this address"},
	{WorkflowNotFound, 404, "", false, false, "no such workflow"},
	{TransitionNotFound, 404, "", false, false, "the workflow has no such transition"},
	{InstanceNotFound, 404, "", false, false, "no such instance"},
	{CommandNotFound, 404, "", false, false, "no such command"},
	{MethodNotAllowed, 405, "", false, false, "the address does not take this method"},
	{NotAcceptable, 406, "", false, false, "none of the accepted representations exists"},
	{CommandAbandoned, 408, "P4030", true, false, "nobody went on with the command in time"},
	{IllegalTransition, 409, "", true, false, "the state does not allow the transition"},
	{GuardRefused, 409, "", true, false, "the workflow refused the command for a reason of the business"},
	{AlreadyExists, 409, "", true, false, "the business key belongs to another instance"},
	{ActivityFailed, 409, "P4030", true, false, "the activity failed permanently"},
	{CommandCancelled, 409, "P4030", true, false, "the command was cancelled while it was in flight"},
	{TooManyEffects, 409, "", true, false, "the instance has the maximum number of effects to undo"},
	{DataTooLarge, 409, "", true, false, "the data of the instance would be larger than its workflow allows"},
	{MigrationRefused, 409, "", true, false, "the plan does not take the instance to the other version"},
	{CorrectionRefused, 409, "", true, false, "the definition does not allow the correction of the instance"},
	{NotStuck, 409, "", true, false, "the command does not wait for an operator"},
	{Conflict, 409, "", false, false, "the request conflicts with an existing resource, such as one with the same name"},
	{LeaseLost, 409, "P4010", false, false, "the command is not, or no longer, held by this attempt"},
	{InProgress, 409, "P4029", false, true, "a command with this key is being worked on"},
	{MigrationWaits, 409, "", false, true, "an activity is in flight that is to end first, or a node serves that does not know the version"},
	{KeyExpired, 410, "", false, false, "the key has expired: its answer is deleted, and the command is never executed again"},
	{EventsGone, 410, "", false, false, "events after this position were removed from the log; the first that is there is named"},
	{VersionConflict, 412, "", true, false, "the instance has moved past the expected version"},
	{TooLarge, 413, "", false, false, "the request is too large"},
	{UnsupportedMedia, 415, "", false, false, "the content type is not JSON"},
	{KeyReused, 422, "P4002", false, false, "the key was used with another request"},
	{MessageReused, 422, "P4050", false, false, "the message id was used with another payload"},
	{MessageNotTaken, 422, "", false, false, "no transition takes the message"},
	{RateLimited, 429, "", false, true, "too many requests"},
	{Internal, 500, "", false, true, "a defect; the log has the details"},
	{Overloaded, 503, "", false, true, "the queue is full"},
	{Paused, 503, "", false, true, "the instance or its workflow is paused"},
	{NotOnThisNode, 503, "", false, true, "this node's build does not know the version or the data that this is about; another node may"},
	{Locked, 503, "", false, true, "another transaction holds the instance or the key"},
	{Unavailable, 503, "", false, true, "the database cannot be reached"},
	{ShuttingDown, 503, "", false, true, "the node is stopping"},
	{TimedOut, 503, "", false, true, "no answer in time; a retry with the same key returns the outcome"},
}

var codeIndex = func() map[Code]CodeInfo {
	m := make(map[Code]CodeInfo, len(Codes))
	for _, c := range Codes {
		m[c.Code] = c
	}
	return m
}()

// Info returns the code's row of the table, and the row of Internal for a code
// that is not in it.
func (c Code) Info() CodeInfo {
	if i, ok := codeIndex[c]; ok {
		return i
	}
	return codeIndex[Internal]
}
