package inbox

import (
	"context"

	"github.com/pawlhq/pawl/transitions"
)

// Source receives messages, for example from a stream of a broker.
type Source interface {
	// Run receives messages until ctx ends and calls consume, which is safe for concurrent use. It
	// returns after all calls of consume have returned. If consume returns nil, the message's
	// effect is committed or it is stored as a dead message: acknowledge it. After an error,
	// redeliver it later.
	//
	// If Run returns before ctx ends, it is called again after a delay.
	Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error
}
