package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/schema/pooler"
)

// ends are when the PostgreSQL project ends its support of a version, the newest first: https://www.postgresql.org/support/versioning/
var ends = []struct {
	major int
	on    time.Time
}{
	{18, time.Date(2030, 11, 14, 0, 0, 0, 0, time.UTC)},
	{17, time.Date(2029, 11, 8, 0, 0, 0, 0, time.UTC)},
	{16, time.Date(2028, 11, 9, 0, 0, 0, 0, time.UTC)},
	{15, time.Date(2027, 11, 11, 0, 0, 0, 0, time.UTC)},
	{14, time.Date(2026, 11, 12, 0, 0, 0, 0, time.UTC)},
}

// lacks are what a version does not have that newer ones do, and that an operator of Pawl may miss.
var lacks = map[int]string{
	14: "; before 15 every role may create tables in the schema public",
	15: "; before 16 connections can be reserved for superusers only",
	16: "; before 17 no setting bounds how long a transaction may last",
}

func lookAtVersion(_ context.Context, x *exam) (string, []Finding, error) {
	fine, found := judgeVersion(x.facts.number, x.facts.version, x.config.now())
	return fine, found, nil
}

// judgeVersion says what is to be known of a version of PostgreSQL on a day.
func judgeVersion(number int, version string, today time.Time) (fine string, found []Finding) {
	major, minor := number/10000, number%10000
	newest, oldest := ends[0].major, ends[len(ends)-1].major
	switch {
	case major < oldest:
		return "", []Finding{problem("", dof("upgrade to PostgreSQL %d", newest),
			"PostgreSQL %s is older than %d, and Pawl does not work on it", version, oldest)}
	case major > newest:
		return "", []Finding{warning("", dof("use one of %d to %d, or a newer Pawl", oldest, newest),
			"PostgreSQL %s is newer than what this program was tested on", version)}
	case major == 14 && minor < 4:
		return "", []Finding{problem("", "upgrade to the newest 14, and REINDEX what was made CONCURRENTLY",
			"before 14.4 an index that is made CONCURRENTLY may lack rows; this is %s", version)}
	}
	end := ends[newest-major].on
	if today.After(end) {
		return "", []Finding{warning("", dof("upgrade to PostgreSQL %d", newest),
			"PostgreSQL %s gets no corrections any more since %s%s", version, end.Format(time.DateOnly), lacks[major])}
	}
	return fmt.Sprintf("PostgreSQL %s, which gets corrections until %s%s", version, end.Format(time.DateOnly), lacks[major]), nil
}

func lookAtWritable(ctx context.Context, x *exam) (string, []Finding, error) {
	if x.facts.standby {
		return "", []Finding{problem("", "let the connection string name all hosts, with target_session_attrs=read-write",
			"this is a standby, where nothing can be written")}, nil
	}
	found, err := x.judge(ctx, rule{"default_transaction_read_only", Problem, isOn, "transactions can write nothing"})
	return "transactions can write", found, err
}

// lookAtClock compares the clocks. Of a few questions the one that was answered soonest tells most.
func lookAtClock(ctx context.Context, x *exam) (string, []Finding, error) {
	var skew time.Duration
	trip := time.Duration(-1)
	for range 3 {
		sent, on := time.Now(), x.config.now()
		theirs, err := one[struct{ At time.Time }](ctx, x, "SELECT clock_timestamp()")
		if err != nil {
			return "", nil, err
		}
		if took := time.Since(sent); trip < 0 || took < trip {
			trip, skew = took, theirs.At.Sub(on.Add(took/2))
		}
	}
	fine := fmt.Sprintf("the clocks of this machine and of the server agree within %s", span(skew.Abs()+trip/2))
	certain := skew.Abs() - trip/2
	if certain < x.limits.clock {
		return fine, nil, nil
	}
	which := "behind"
	if skew > 0 {
		which = "ahead of"
	}
	const do = todo("have NTP set both clocks: nodes decide by the server's, and take tokens and signed webhooks by their own")
	f := warning("", do, "the server's clock is %s %s this machine's", span(skew), which)
	if certain >= x.limits.clockFar {
		f.Severity = Problem
	}
	return "", []Finding{f}, nil
}

const pooled = "add default_query_exec_mode=exec to the connection string, and give serve --listen an address past the pooler"

// lookAtPooler looks whether a pooler in transaction mode is there, and whether the nodes are told.
func lookAtPooler(ctx context.Context, x *exam) (string, []Finding, error) {
	held, err := x.pool.Acquire(ctx)
	if err != nil {
		return "", nil, err
	}
	defer held.Release()
	err = pooler.CheckSession(ctx, held.Conn())
	shared := errors.Is(err, pooler.ErrShared)
	if err != nil && !shared {
		return "", nil, err
	}
	told := pooler.Expected(x.asked)
	switch {
	case shared && !told:
		return "", []Finding{problem("", todo(pooled),
			"a pooler in transaction mode is there, and nodes with this connection string refuse to work through it")}, nil
	case shared:
		return "a pooler in transaction mode is there, and the connection string says so; serve needs --listen to hear other nodes at once",
			nil, nil
	case told:
		return "no pooler in transaction mode is there; without default_query_exec_mode the nodes would prepare their statements", nil, nil
	}
	return "no pooler in transaction mode is there", nil, nil
}
