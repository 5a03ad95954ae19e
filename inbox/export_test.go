package inbox

const WaitingSQL = waitingSQL
