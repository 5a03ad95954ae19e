package doctor

import (
	"fmt"
	"strings"
	"time"
)

// Severity is how bad something is.
type Severity string

// The severities, the worst last.
const (
	OK      Severity = "ok"
	Unknown Severity = "unknown" // it could not be seen
	Warning Severity = "warning" // it hurts, or will
	Problem Severity = "problem" // something does not work, or may be lost
)

// Finding is what a check has found.
type Finding struct {
	Check    string   `json:"check"`           // the name of a [Check]
	About    string   `json:"about,omitempty"` // such as the index, the sink, the session
	Severity Severity `json:"severity"`
	Found    string   `json:"found"`
	Do       string   `json:"do,omitempty"` // what to do about it
}

// Report is what an examination has found.
type Report struct {
	At       time.Time     `json:"at"` // by the clock of this program
	Took     time.Duration `json:"-"`
	Server   string        `json:"server,omitempty"` // its version; "" where nobody answered
	Database string        `json:"database,omitempty"`
	Role     string        `json:"role,omitempty"`
	Schema   string        `json:"schema"`
	Problems int           `json:"problems"`
	Warnings int           `json:"warnings"`
	Unknown  int           `json:"unknown"`
	Findings []Finding     `json:"findings"` // in the order of [Checks]; of each check at least one
}

func (r *Report) add(check string, list ...Finding) {
	for _, f := range list {
		f.Check = check
		switch f.Severity {
		case Problem:
			r.Problems++
		case Warning:
			r.Warnings++
		case Unknown:
			r.Unknown++
		}
		r.Findings = append(r.Findings, f)
	}
}

// todo is what is to be done about a finding.
type todo string

func dof(format string, args ...any) todo { return todo(fmt.Sprintf(format, args...)) }

func problem(about string, do todo, format string, args ...any) Finding {
	return Finding{About: about, Severity: Problem, Found: fmt.Sprintf(format, args...), Do: string(do)}
}

func warning(about string, do todo, format string, args ...any) Finding {
	return Finding{About: about, Severity: Warning, Found: fmt.Sprintf(format, args...), Do: string(do)}
}

func unknown(do todo, format string, args ...any) Finding {
	return Finding{Severity: Unknown, Found: fmt.Sprintf(format, args...), Do: string(do)}
}

// several is a number of things, such as "1 sink" and "2 sinks".
func several[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// bytes is a size as people read it.
func bytes(n int64) string {
	const step = 1024
	if n < step {
		return several(n, "byte")
	}
	size, unit := float64(n)/step, 0
	for size >= step && unit < 3 {
		size, unit = size/step, unit+1
	}
	return decimal(size) + [...]string{" kB", " MB", " GB", " TB"}[unit]
}

// decimal has one digit after the point, unless that is 0.
func decimal(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }

// span is a length of time as people read it, in its two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = d.Abs(); {
	case d >= 2*day:
		return units(d, day, "d", time.Hour, "h")
	case d >= time.Hour:
		return units(d, time.Hour, "h", time.Minute, "min")
	case d >= time.Minute:
		return units(d, time.Minute, "min", time.Second, "s")
	case d >= time.Second:
		return decimal(d.Seconds()) + " s"
	}
	return decimal(float64(d)/float64(time.Millisecond)) + " ms"
}

func units(d, large time.Duration, ofLarge string, small time.Duration, ofSmall string) string {
	text := fmt.Sprintf("%d %s", d/large, ofLarge)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, ofSmall)
	}
	return text
}
