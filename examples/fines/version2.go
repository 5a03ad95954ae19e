package fines

import "github.com/pawlhq/pawl/workflow"

// Instalments is the state of a fine that is paid in monthly parts (art. 202-bis). Version 1 does not have it.
const Instalments workflow.State = "instalments"

// Version2 is the fine with one state more. Cases that began with version 1 come to it as they are: all their states, their data and
// the term that runs are the same. So the plan has nothing to say.
var Version2 = define(2,
	workflow.On("grant_instalments", from(Penalised), Instalments, dated).
		Doc("The prefect grants payment in monthly parts (art. 202-bis). Nothing is collected meanwhile."),
	workflow.On("payment", from(Instalments), workflow.Stay, payment).Or(Paid).
		Doc("A part arrived, or the last one."),
	workflow.On("lose_instalments", from(Instalments), Penalised, dated).
		Doc("A part was missed: what is left is due at once."),
).Migrate(workflow.FromVersion[Fine, Fine](1, nil))

// dated notes the day of an entry that changes nothing else.
func dated(_ *workflow.Call, f *Fine, p Dated) error { return f.enter(p.On) }
