package eventlog_test

import (
	"fmt"
	"os"

	"github.com/pawlhq/pawl/internal/replay/eventlog"
)

// Each event of a log is a command, whether the log is read or made up.
func Example() {
	for c, err := range eventlog.Generate(1, 1) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		for _, e := range c.Events {
			command, err := e.Command()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			fmt.Println(command.Key, command.Transition, string(command.Payload))
		}
	}

	// Output:
	// G000001-1 create_fine {"case":"G000001","on":"2007-10-09","amount_cents":3900,"article":181,"vehicle_class":"A","officer":562}
	// G000001-2 send_fine {"on":"2007-12-12","expense_cents":1100}
	// G000001-3 insert_fine_notification {"on":"2008-01-05","notification_type":"P","last_sent":"P"}
	// G000001-4 add_penalty {"on":"2008-03-05","amount_cents":8000}
	// G000001-5 send_for_credit_collection {"on":"2010-03-30"}
}
