package doctor

import (
	"fmt"
	"strings"
	"time"
)

// Severity is the severity of a finding.
type Severity string

// The severities, the worst last.
const (
	OK      Severity = "ok"
	Unknown Severity = "unknown" // the check could not be done
	Warning Severity = "warning" // a disadvantage or a risk
	Problem Severity = "problem" // something does not work, or data may be lost
)

// Finding is a result of a check.
type Finding struct {
	Check    string   `json:"check"`           // the name of a [Check]
	About    string   `json:"about,omitempty"` // such as the index, the sink, the session
	Severity Severity `json:"severity"`
	Found    string   `json:"found"`
	Do       string   `json:"do,omitempty"` // the remedy
}

// Report is the result of an examination.
type Report struct {
	At       time.Time     `json:"at"` // by the clock of this program
	Took     time.Duration `json:"-"`
	Server   string        `json:"server,omitempty"` // its version; "" without a connection
	Database string        `json:"database,omitempty"`
	Role     string        `json:"role,omitempty"`
	Schema   string        `json:"schema"`
	Problems int           `json:"problems"`
	Warnings int           `json:"warnings"`
	Unknown  int           `json:"unknown"`
	Findings []Finding     `json:"findings"` // in the order of [Checks], at least one for each
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

// todo is a remedy.
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

// several formats a number of things, such as "1 sink" and "2 sinks".
func several[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// bytes formats a size.
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

// decimal formats a number with one digit after the point, unless that is 0.
func decimal(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }

// span formats a duration in its two largest units.
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
