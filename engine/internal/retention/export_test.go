package retention

const HeldSQL = heldSQL
