package inbox

import (
	"context"

	"github.com/pawlhq/pawl/transitions"
)

// Source receives messages, for example from a stream of a broker.
type Source interface {
	// Run receives messages until ctx ends, and hands each one to consume, from as
	// many goroutines as it likes; it returns when all of them have. What consume
	// returns says what to do with the message. nil: its effect is committed, or it
	// is on the list of dead messages: acknowledge it. An error: have it delivered
	// again later.
	//
	// When Run returns before ctx ends, it is run again after a while.
	Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error
}
