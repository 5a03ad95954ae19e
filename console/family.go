package console

import (
	"net/url"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
)

// family is what an instance has started, a page of it.
type family struct {
	Children []wire.Child
	Begun    bool   // it is the first page
	Next     string // the address of the next page
}

// childrenOfPage is how many children a page shows.
const childrenOfPage = 25

// family reads the children, those that are asked for or the first ones.
func (v *visit) family(page *instancePage) error {
	cursor := v.query("children")
	q := url.Values{"limit": {strconv.Itoa(childrenOfPage)}, "cursor": {cursor}}
	found, err := get[api.ChildPage](v, "/v1"+segments("instances", page.ID.String(), "children"), q)
	if err != nil {
		return err
	}
	f := &family{Children: found.Children, Begun: cursor == ""}
	if found.Next != "" {
		f.Next = v.at("instances", page.ID.String()) + query("children", found.Next) + "#family"
	}
	if len(f.Children) > 0 || f.Next != "" || !f.Begun {
		page.Family = f
	}
	return nil
}

// waitsForChild is the child whose end takes the instance on; nil where none is known.
func (p *instancePage) waitsForChild() *wire.Child {
	if p.Family == nil {
		return nil
	}
	for i := range p.Family.Children {
		if c := &p.Family.Children[i]; c.Open && c.End != "" {
			return c
		}
	}
	return nil
}
