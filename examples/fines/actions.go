package fines

import "github.com/pawlhq/pawl/workflow"

func createFine(c *workflow.Call, f *Fine, p CreateFine) error {
	f.Article, f.VehicleClass, f.Points, f.Officer = p.Article, p.VehicleClass, p.Points, p.Officer
	f.Amount, f.Maximum, f.IssuedOn, f.LastOn = *p.AmountCents, p.MaximumCents, p.On, p.On
	if f.Maximum != 0 && f.Maximum/2 <= f.Amount {
		return errLowMaximum
	}
	f.annul(c, p.Dismissal)
	return nil
}

func sendFine(_ *workflow.Call, f *Fine, p SendFine) error {
	f.SentOn, f.Expenses = p.On, *p.ExpenseCents
	return f.enter(p.On)
}

func insertFineNotification(_ *workflow.Call, f *Fine, p InsertFineNotification) error {
	f.NotifiedOn, f.NotificationType, f.LastSent = p.On, p.NotificationType, p.LastSent
	return f.enter(p.On)
}

func addPenalty(c *workflow.Call, f *Fine, p AddPenalty) error {
	if err := f.enter(p.On); err != nil {
		return err
	}
	switch {
	case p.On < f.NotifiedOn.Add(PayTerm):
		return errTermRuns
	case *p.AmountCents <= f.Amount:
		return errNoRaise
	}
	f.RaisedOn, f.Raised = p.On, *p.AmountCents
	c.Return(Balance{f.Owed(p.On) - f.Paid})
	return nil
}

// raise adds the penalty if it is not entered: the law determines the sum, the clock the day. An entry may be dated ahead of the clock.
func raise(c *workflow.Call, f *Fine, _ workflow.None) error {
	f.RaisedOn, f.Raised = max(DateOf(c.Now().UTC()), f.LastOn), f.Maximum/2
	c.Return(Balance{f.Owed(f.RaisedOn) - f.Paid})
	return f.enter(f.RaisedOn)
}

func payment(c *workflow.Call, f *Fine, p Payment) error {
	f.Paid += p.AmountCents
	due := f.Owed(p.On) - f.Paid
	if due <= 0 {
		c.Goto(Paid)
	}
	c.Return(Balance{due})
	return f.enter(p.On)
}

func insertAppeal(_ *workflow.Call, f *Fine, p Dated) error {
	f.AppealedOn = p.On
	return f.enter(p.On)
}

func sendAppeal(c *workflow.Call, f *Fine, p Ruling) error {
	f.ForwardedOn = p.On
	f.annul(c, p.Dismissal)
	return f.enter(p.On)
}

func receiveResult(_ *workflow.Call, f *Fine, p Dated) error {
	f.OrderedOn = p.On
	return f.enter(p.On)
}

func notifyResult(_ *workflow.Call, f *Fine, p Dated) error {
	f.OrderServedOn = p.On
	return f.enter(p.On)
}

func appealToJudge(c *workflow.Call, f *Fine, p Ruling) error {
	f.JudgeOn = p.On
	f.annul(c, p.Dismissal)
	return f.enter(p.On)
}

func sendForCollection(_ *workflow.Call, f *Fine, p Dated) error {
	if err := f.enter(p.On); err != nil {
		return err
	}
	if f.Paid >= f.Owed(p.On) {
		return errNothingOwed
	}
	f.CollectionOn = p.On
	return nil
}

// enter is the rule that every entry of a case obeys: it is not dated before
// the newest one.
func (f *Fine) enter(on Date) error {
	if on < f.LastOn {
		return errOutOfOrder
	}
	f.LastOn = on
	return nil
}

// annul ends the case if there is a dismissal code. The transition's name in the history shows which authority annulled the fine.
func (f *Fine) annul(c *workflow.Call, code string) {
	if code == "" {
		return
	}
	f.Dismissal = code
	c.Because("annulled with code " + code)
	c.Goto(Dismissed)
}
