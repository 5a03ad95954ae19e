package feed_test

import (
	"testing"
	"time"
)

// A batch that arrives although nobody polled was announced by the other node.
func TestAnotherNodeHearsByNotification(t *testing.T) {
	t.Parallel()
	url := database(t)
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
	url := database(t)
	here, there := startNode(t, url, true), startNode(t, url, true)
	r := there.reader(t, 0)
	r.mustReadTo(t, here.publish(t, 1))
	polls := there.count(poll)
	begun := time.Now()
	r.mustReadTo(t, here.publish(t, 3))
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if there.count(poll) == polls {
		t.Error("it came without a poll: something else told the node")
	}
	if n := here.count("pg_notify") + here.count("LISTEN") + there.count("LISTEN"); n != 0 {
		t.Errorf("%d notifications though they are suppressed", n)
	}
}

func TestAListenerThatIsCutListensAgain(t *testing.T) {
	t.Parallel()
	url := database(t)
	here, there := startNode(t, url, true), startNode(t, url, false)
	r := there.reader(t, 0)
	eventually(t, "it listens", func() bool { return there.count("LISTEN") == 1 })
	if _, err := here.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'pawl listener'`); err != nil {
		t.Fatal(err)
	}
	r.mustReadTo(t, here.publish(t, 2)) // by polling
	eventually(t, "it listens again", func() bool { return there.count("LISTEN") == 2 })
	r.mustReadTo(t, here.publish(t, 2))
}

func TestManyCommitsAreOneNotification(t *testing.T) {
	t.Parallel()
	url := database(t)
	here, there := startNode(t, url, false), startNode(t, url, false)
	r := there.reader(t, 0)
	const commits = 300
	begun := time.Now()
	var head int64
	for range commits {
		head = here.publish(t, 1)
	}
	took := time.Since(begun)
	r.mustReadTo(t, head)
	// One at once, then at most one in 20 ms.
	if got, most := here.count("pg_notify"), 2+int(took/(20*time.Millisecond)); got > most {
		t.Errorf("%d notifications of %d commits in %s", got, commits, took)
	}
}

// Anybody may send what he likes on the channel.
func TestANotificationThatIsWrongCostsOneRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, database(t), false)
	eventually(t, "it listens", func() bool { return n.count("LISTEN") == 1 })
	r := n.reader(t, 0)
	r.mustReadTo(t, n.publish(t, 1))
	for _, payload := range []string{"", "x", "x y", "x 12", "x -5 acme corp", "x 99999999999999999999 acme corp", "x 1 nobody"} {
		if _, err := n.pool.Exec(t.Context(), "SELECT pg_notify('pawl', $1)", payload); err != nil {
			t.Fatal(err)
		}
	}
	reads := n.count(logRead)
	if _, err := n.pool.Exec(t.Context(), "SELECT pg_notify('pawl', 'x 1000000 ' || $1)", tenant); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tail looks", func() bool { return n.count(logRead) > reads })
	time.Sleep(200 * time.Millisecond) // to see what it does when left alone
	if got := n.count(logRead) - reads; got > 3 {
		t.Errorf("%d reads because of one wrong notification", got)
	}
	r.mustReadTo(t, n.publish(t, 2))
}
