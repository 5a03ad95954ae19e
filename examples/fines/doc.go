// Package fines is an example from public administration: a road traffic fine
// under the Italian highway code, from the violation to payment, annulment or
// the collector, with appeals to the prefect and to the justice of the peace.
//
// It was modelled on the Road Traffic Fine Management Process log of an Italian
// local police force (de Leoni and Mannhardt, 4TU.ResearchData,
// doi:10.4121/uuid:270fd440-1057-4fb9-89a9-b699b47990f5): 150,370 cases with
// 561,470 events, of which this workflow accepts 559,396 and refuses 2,074 with
// a reason. Most of what it refuses had lost its object: entries about fines
// that were paid (1,275) or annulled (655) before. The rest went to the wrong
// place (appeals to two authorities at once, papers that nobody waits for) or
// raise, pay or collect nothing.
//
// In the log the office enters the penalty itself when the 60 days to pay are
// over. A fine that is recorded with the maximum that the law allows, which the
// log does not have, is raised by a timer instead; see [Workflow].
//
// The model is no legal advice. Comments cite the articles that were read while
// it was written, and describe the rest.
package fines
