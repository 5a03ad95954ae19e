package console

import (
	"net/url"

	"github.com/pawlhq/pawl/api"
)

// commandList is a page of the commands in flight that the address selects.
type commandList struct {
	polled
	api.CommandPage
	Filter    map[string]string
	Kinds     []string
	Workflows []string // that the user may see; nil where he may not see the list
	Next      string   // the address of the next page
}

// commands is the list, or the command that the address names.
func (v *visit) commands() error {
	if v.query("scope") != "" || v.query("key") != "" {
		return v.commandPage()
	}
	list, err := get[api.CommandPage](v, "/v1/ops/commands", v.listed("status", "workflow", "actor", "proof"))
	if err != nil {
		return err
	}
	known, err := get[api.WorkflowList](v, "/v1/workflows", nil)
	if only(err) != nil {
		return err
	}
	page := commandList{CommandPage: list, Kinds: api.CommandKinds, Next: v.nextPage(list.Next),
		Filter: map[string]string{"status": v.query("status"), "workflow": v.query("workflow"),
			"actor": v.query("actor"), "proof": v.query("proof")}}
	for _, w := range known.Workflows {
		page.Workflows = append(page.Workflows, w.Name)
	}
	return v.show("commands", "Commands", page)
}

// pausedPage is what is paused.
type pausedPage struct {
	polled
	api.PausedList
	Next string // the address of the next page
}

func (v *visit) paused() error {
	list, err := get[api.PausedList](v, "/v1/ops/paused", v.listed("workflow"))
	if err != nil {
		return err
	}
	return v.show("paused", "Paused", pausedPage{PausedList: list, Next: v.nextPage(list.Next)})
}

// pausedFirst asks for what is paused, and for as many instances.
func (v *visit) pausedFirst(limit string) (api.PausedList, error) {
	return get[api.PausedList](v, "/v1/ops/paused", url.Values{"limit": {limit}})
}
