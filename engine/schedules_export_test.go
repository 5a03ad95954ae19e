package engine

// WakeSchedules lets the engine poll for due schedules, for tests that move the clock.
func WakeSchedules(e *Engine) { e.schedules.Wake() }
