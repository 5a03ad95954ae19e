package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/internal/replay"
)

// logTenant is whose fines they are. Its log holds nothing else.
const logTenant = "register"

// log is the last chapter: a real case, and much of it.
func (s *story) log(ctx context.Context, folder string, events int64) error {
	s.title("Thirteen years of traffic fines")
	log, err := replay.Find(folder, events)
	if err != nil {
		return err
	}
	s.narrate(fmt.Sprintf("A log of fines, every entry submitted twice at the same moment: over HTTP, and from Go.\n"+
		"Then what is durable is compared with an independent reading of the same log.\nThe log: %s.", log))
	report, err := replay.Play(ctx, replay.Options{
		Log: log, Targets: []replay.Target{replay.HTTP(s.url, nil), s.engine},
		Engine: s.engine, Pool: s.stage.pool, Schema: s.stage.schema, Tenant: logTenant, Progress: s.out,
	})
	if report != nil {
		s.printf("     %s\n", strings.ReplaceAll(strings.TrimSpace(report.String()), "\n", "\n     "))
	}
	if err != nil {
		return s.failed(err)
	}
	s.held("each entry has one effect, both callers got the same answer, and nothing differs")
	return nil
}
