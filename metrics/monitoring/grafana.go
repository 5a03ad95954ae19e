package monitoring

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Docs is where the documentation is, for who reads a dashboard or an alert.
const Docs = "https://github.com/pawlhq/pawl/blob/main/docs/operations.md"

type object = map[string]any

// source is the data source that is chosen on the dashboard.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// The dashboard is 24 columns wide.
const (
	columns    = 24
	statWidth  = 3
	graphWidth = 8
	statHeight = 4
	height     = 8
)

// Grafana is the dashboard as Grafana imports it.
func Grafana() ([]byte, error) {
	return indented(object{
		"uid": "pawl", "title": "Pawl", "tags": []string{"pawl"}, "schemaVersion": 39, "version": 1, "editable": true, "timezone": "browser",
		"refresh": "30s", "time": object{"from": "now-3h", "to": "now"}, "graphTooltip": 1,
		"links":       []object{{"type": "link", "title": "Operations", "url": Docs, "icon": "doc", "targetBlank": true}},
		"templating":  object{"list": choices},
		"annotations": object{"list": []object{}},
		"panels":      laidOut(),
	})
}

// choices are what people choose on the dashboard: a data source, and some of the jobs that scrape Pawl.
var choices = []object{
	{"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"},
	{"type": "query", "name": "job", "label": "Job", "datasource": source, "query": object{"query": jobs, "refId": "job"},
		"definition": jobs, "refresh": 2, "multi": true, "includeAll": true, "allValue": ".+",
		"current": object{"text": "All", "value": "$__all"}},
}

const jobs = "label_values(pawl_commit_groups_total, job)"

// laidOut are the panels, each at its place, from left to right under the title of its row.
func laidOut() (panels []object) {
	y := 0
	for _, r := range Rows {
		panels = append(panels, object{"type": "row", "title": r.Title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1}})
		y++
		x, tallest := 0, 0
		for _, p := range r.Panels {
			w, h := graphWidth, height
			if p.Stat {
				w, h = statWidth, statHeight
			}
			if x+w > columns {
				x, y, tallest = 0, y+tallest, 0
			}
			panel := p.grafana()
			panel["gridPos"] = object{"x": x, "y": y, "w": w, "h": h}
			panels = append(panels, panel)
			x, tallest = x+w, max(tallest, h)
		}
		y += tallest
	}
	for i, p := range panels {
		p["id"] = i + 1
	}
	return panels
}

// grafana is a panel without its place.
func (p Panel) grafana() object {
	kind, options := "timeseries", object{
		"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	defaults := object{"unit": p.Unit, "min": 0}
	if p.Stat {
		kind, options = "stat", object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value", "graphMode": "area"}
		defaults["thresholds"] = object{"mode": "absolute", "steps": p.steps()}
		defaults["noValue"] = "–"
	}
	var targets []object
	for i, l := range p.Lines {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source,
			"expr": ofJob(l.Query), "legendFormat": l.Legend})
	}
	return object{"type": kind, "title": p.Title, "description": p.about(), "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "options": options}
}

// steps are the colours of a newest value.
func (p Panel) steps() []object {
	steps := []object{{"color": "green", "value": nil}}
	if p.Alarm {
		steps = append(steps, object{"color": "red", "value": 0.000001})
	}
	return steps
}

// about is what the metrics of a panel are, in the words of their table.
func (p Panel) about() string {
	var lines []string
	for _, l := range p.Lines {
		list, _ := Metrics(l.Query)
		for _, m := range list {
			if line := "`" + m.Name + "`: " + m.Help; !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "\n\n")
}

func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
