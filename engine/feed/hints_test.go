package feed_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// A batch that arrives although nobody polled was announced by the other node.
func TestAnotherNodeHearsByNotification(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url, false), startNode(t, url, false)
	eventually(t, "both nodes listen", func() bool { return here.count("LISTEN") == 1 && there.count("LISTEN") == 1 })
	r := there.reader(t, 0)
	r.mustReadTo(t, here.publish(t, 1))
	for range 10 {
		polls := there.count(poll)
		r.mustReadTo(t, here.publish(t, 1))
		if there.count(poll) == polls {
			return
		}
	}
	t.Error("every transition came with a poll: the notifications are not heard")
}

func TestWithoutNotificationsAnotherNodeHearsByPolling(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url, true), startNode(t, url, true)
	r := there.reader(t, 0)
	r.mustReadTo(t, here.publish(t, 1))
	polled := false
	for range 10 { // a poll that was under way when it was counted may bring one
		polls := there.count(poll)
		r.mustReadTo(t, here.publish(t, 3))
		polled = polled || there.count(poll) > polls
	}
	if !polled {
		t.Error("everything came without a poll: something else told the node")
	}
	if n := here.count("pg_notify") + here.count("LISTEN") + there.count("LISTEN"); n != 0 {
		t.Errorf("%d notifications though they are suppressed", n)
	}
}

func TestAListenerThatIsCutListensAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url, true), startNode(t, url, false)
	r := there.reader(t, 0)
	eventually(t, "it listens", func() bool { return there.count("LISTEN") == 1 })
	if _, err := here.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'pawl listener' AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	r.mustReadTo(t, here.publish(t, 2)) // by polling
	eventually(t, "it listens again", func() bool { return there.count("LISTEN") == 2 })
	r.mustReadTo(t, here.publish(t, 2))
}

// Whoever says so may be wrong.
func TestAHintThatIsWrongCostsOneRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	r := n.reader(t, 0)
	r.mustReadTo(t, n.publish(t, 1))
	n.Heard(tenant, -5)
	n.Heard("nobody", 1)
	reads := n.count(logRead)
	n.Heard(tenant, 1_000_000)
	eventually(t, "the tail looks", func() bool { return n.count(logRead) > reads })
	time.Sleep(200 * time.Millisecond) // to see what it does when left alone
	if got := n.count(logRead) - reads; got > 3 {
		t.Errorf("%d reads because of one wrong hint", got)
	}
	r.mustReadTo(t, n.publish(t, 2))
}
