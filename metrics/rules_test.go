package metrics_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fire makes an alert fire: series in the notation of promtool, one value per minute, and the labels of the alert.
type fire struct {
	series map[string]string
	labels map[string]string
	alone  bool // without the series of the other alerts
}

// with returns a series with one value.
func with(series, value string) fire {
	return fire{series: map[string]string{series: value + "x30"}}
}

// of adds a label.
func (f fire) of(name, value string) fire {
	f.labels = map[string]string{name: value}
	return f
}

// fires has an example for every alert.
var fires = map[string]fire{
	"PawlStuckCommands": with(`pawl_keys_stuck`, `1`),
	"PawlStaleClaims":   with(`pawl_keys_oldest_stale_seconds`, `121`),
	"PawlLapsedClaims":  with(`pawl_keys_oldest_lapsed_seconds`, `86401`),
	"PawlDueWorkWaits":  with(`pawl_keys_oldest_due_seconds`, `301`),
	"PawlVersionUnknown": {series: map[string]string{`pawl_instances{workflow="order",definition="1",state="placed",open="true"}`: `3x30`,
		`pawl_version_nodes{workflow="order",definition="1",known="true"}`: `0x30`},
		labels: map[string]string{"workflow": "order", "definition": "1"}},
	"PawlManyAttempts":      with(`pawl_keys_many_attempts`, `11`),
	"PawlSinkLags":          with(`pawl_sink_lag_seconds{sink="crm"}`, `301`).of("sink", "crm"),
	"PawlSinkBlocked":       with(`pawl_sink_stuck_tenants{sink="crm"}`, `1`).of("sink", "crm"),
	"PawlSinkUnserved":      with(`pawl_sink_served{sink="crm"}`, `0`).of("sink", "crm"),
	"PawlDeadLetters":       with(`pawl_sink_dead_letters{sink="crm"}`, `1`).of("sink", "crm"),
	"PawlDeadMessages":      with(`pawl_inbox_dead_messages`, `1`),
	"PawlKeysReused":        with(`pawl_scope_commands_total{scope="order:place",outcome="mismatched"}`, `0+1`).of("scope", "order:place"),
	"PawlRetentionBehind":   with(`pawl_keys_oldest_expired_seconds`, `21601`),
	"PawlRetentionUnserved": with(`pawl_retention_served`, `0`),
	"PawlPartitionsHeld":    with(`pawl_partitions_held{table="outbox"}`, `3`).of("table", "outbox"),
	"PawlMigrationHeld":     with(`pawl_migrations_held`, `1`),
	"PawlMigrationStalls": {series: map[string]string{`pawl_migration_left_instances`: `5x30`, `pawl_migrations_held`: `0x30`},
		alone: true},
	"PawlMigrationRefuses":    with(`pawl_migrated_instances_total{outcome="rejected"}`, `0+1`),
	"PawlMetricsMissing":      {series: map[string]string{`pawl_keys_stuck`: `0x30`}, alone: true},
	"PawlOverloaded":          with(`pawl_commands_refused_total`, `0+1`),
	"PawlDatabaseUnreachable": with(`pawl_scrape_read_failures_total{of="keys"}`, `0+1`),
	"PawlErrors": {series: map[string]string{`pawl_http_requests_total{code="503"}`: `0+2x30`,
		`pawl_http_requests_total{code="200"}`: `0+98x30`}},
	"PawlCertificate":      with(`pawl_tls_certificate_end_timestamp_seconds{instance="n"}`, `3600`).of("instance", "n"),
	"PawlIdentityProvider": with(`pawl_auth_key_failures_total{instance="n"}`, `0+1`).of("instance", "n"),
	"PawlConnections":      with(`pawl_http_connections_refused_total{instance="n"}`, `0+61`).of("instance", "n"),
}

// TestEveryAlertFires checks the rules with promtool, and the labels and annotations of each alert when it fires.
func TestEveryAlertFires(t *testing.T) {
	promtool := program(t, "promtool")
	rules, err := filepath.Abs(rulesFile)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", rules).CombinedOutput()
	require.NoError(t, err, out)
	type object = map[string]any
	var alone, together struct{ series, alerts []object }
	for _, a := range alerts(t) {
		f, is := fires[a["alert"]]
		assert.True(t, is, a["alert"])
		test := &together
		if f.alone {
			test = &alone
		}
		for name, values := range f.series {
			test.series = append(test.series, object{"series": name, "values": values})
		}
		labels, names := object{"severity": a["severity"]}, []string(nil)
		for name, value := range f.labels {
			labels[name] = value
			names = append(names, "{{ $labels."+name+" }}", value)
		}
		told := strings.NewReplacer(names...)
		test.alerts = append(test.alerts, object{"eval_time": "20m", "alertname": a["alert"], "exp_alerts": []object{{
			"exp_labels": labels, "exp_annotations": object{
				"summary": told.Replace(a["summary"]), "description": told.Replace(a["description"]), "runbook_url": a["runbook_url"]}}}})
	}
	tests := []object{{"interval": "1m", "input_series": alone.series, "alert_rule_test": alone.alerts},
		{"interval": "1m", "input_series": together.series, "alert_rule_test": together.alerts}}
	text, err := json.Marshal(object{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": tests})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "test.yml") // JSON is YAML
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err = exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput()
	assert.NoError(t, err, out)
}
