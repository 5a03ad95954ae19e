// Package fines is an example from public administration: a road traffic fine under the Italian highway code, from the violation to
// payment, annulment or the collector, with appeals to the prefect and to the justice of the peace.
//
// It models the Road Traffic Fine Management Process log of an Italian local police force (de Leoni and Mannhardt, 4TU.ResearchData,
// doi:10.4121/uuid:270fd440-1057-4fb9-89a9-b699b47990f5): 150,370 cases with 561,470 events, of which this workflow accepts 559,396 and
// refuses 2,074 with a reason. Most refused entries concern fines that were already paid (1,275) or annulled (655). The others are out of
// place (appeals to two authorities at once, papers that are not expected) or raise, pay or collect nothing.
//
// In the log the office enters the penalty itself when the 60 days to pay are over. A fine that is recorded with its legal maximum, which
// the log does not have, is raised by a timer instead; see [Workflow].
//
// The model is not legal advice. Comments cite the articles on which it is based, and describe the other rules.
package fines
