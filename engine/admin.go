package engine

// Admin serves operators: stuck work, paused workflows, dead letters, sinks, migrations, versions, retention, verification and
// statistics. It also has the methods of Reader.
type Admin struct{ Reader }

// Admin returns the operators' methods of the engine.
func (e *Engine) Admin() *Admin { return &Admin{Reader{e}} }

// Reader answers queries about instances, commands, workflows and the log. Its methods read committed state and write nothing.
type Reader struct{ e *Engine }

// Read returns the query methods of the engine.
func (e *Engine) Read() *Reader { return &Reader{e} }
