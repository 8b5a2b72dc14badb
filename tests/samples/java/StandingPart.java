/** What Standing defines a hidden class of. */
class StandingPart {
    static long part(long seed) {
        return seed ^ seed >>> 9;
    }
}
