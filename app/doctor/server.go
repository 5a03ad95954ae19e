package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/schema/pooler"
)

// ends has the end of support of each version, the newest first: https://www.postgresql.org/support/versioning/
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

// lacks has limitations of old versions.
var lacks = map[int]string{
	14: "; before 15 every role may create tables in the schema public",
	15: "; before 16 connections can be reserved for superusers only",
	16: "; before 17 no setting bounds how long a transaction may last",
}

func lookAtVersion(_ context.Context, x *exam) (string, []Finding, error) {
	fine, found := judgeVersion(x.facts.number, x.facts.version, x.config.now())
	return fine, found, nil
}

// judgeVersion reports the support of a version of PostgreSQL on a day.
func judgeVersion(number int, version string, today time.Time) (fine string, found []Finding) {
	major, minor := number/10000, number%10000
	newest, oldest := ends[0].major, ends[len(ends)-1].major
	switch {
	case major < oldest:
		return "", []Finding{problem("", dof("upgrade to PostgreSQL %d", newest),
			"PostgreSQL %s is older than %d, which Pawl does not support", version, oldest)}
	case major > newest:
		return "", []Finding{warning("", dof("use one of %d to %d, or a newer Pawl", oldest, newest),
			"PostgreSQL %s is newer than the versions that this program was tested on", version)}
	case major == 14 && minor < 4:
		return "", []Finding{problem("", "upgrade to the newest 14, and REINDEX the indexes that were created CONCURRENTLY",
			"before 14.4 an index that was created CONCURRENTLY may lack rows; this is %s", version)}
	}
	end := ends[newest-major].on
	if today.After(end) {
		return "", []Finding{warning("", dof("upgrade to PostgreSQL %d", newest),
			"PostgreSQL %s is unsupported since %s%s", version, end.Format(time.DateOnly), lacks[major])}
	}
	return fmt.Sprintf("PostgreSQL %s, which is supported until %s%s", version, end.Format(time.DateOnly), lacks[major]), nil
}

func lookAtWritable(ctx context.Context, x *exam) (string, []Finding, error) {
	if x.facts.standby {
		return "", []Finding{problem("", "name all hosts in the connection string, with target_session_attrs=read-write",
			"this is a standby, which is read-only")}, nil
	}
	found, err := x.judge(ctx, rule{"default_transaction_read_only", Problem, isOn, "transactions are read-only"})
	return "transactions can write", found, err
}

// lookAtClock compares the clocks by the fastest of three round trips.
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
	const do = todo("synchronize both clocks with NTP: nodes use the server's clock for decisions, and their own for tokens and signatures")
	f := warning("", do, "the server's clock is %s %s this machine's", span(skew), which)
	if certain >= x.limits.clockFar {
		f.Severity = Problem
	}
	return "", []Finding{f}, nil
}

const pooled = "add default_query_exec_mode=exec to the connection string, and set serve --listen to an address past the pooler"

// lookAtPooler detects a pooler in transaction mode, and checks that the connection string is adapted to it.
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
			"nodes refuse to start with this connection string, because the server is behind a pooler in transaction mode")}, nil
	case shared:
		return "a pooler in transaction mode, and the connection string is adapted to it; serve needs --listen for notifications",
			nil, nil
	case told:
		return "no pooler in transaction mode; without default_query_exec_mode nodes would use prepared statements", nil, nil
	}
	return "no pooler in transaction mode", nil, nil
}
