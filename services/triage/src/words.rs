//! The words that questions are made of, and that are therefore no names.

/// Words that ask about a cluster.
const CLUSTER: &str = "
    cluster kubernetes k8s kubectl namespace namespaces pod pods container containers deployment
    deployments statefulset statefulsets daemonset daemonsets replicaset replica replicas node nodes
    ingress pvc pvcs claim claims job jobs cronjob cronjobs configmap configmaps secret secrets rollout
    crashloop crashloopbackoff imagepullbackoff oomkilled helm workload workloads endpoints";

/// Words that ask about a machine.
const HOST: &str = "
    host machine computer laptop server disk disks filesystem filesystems inode inodes swap load uptime
    kernel dmesg systemd systemctl unit units port ports listening listen df os system vm box ram
    storage";

/// Words that ask about trouble, whatever it is in.
const TROUBLE: &str = "
    wrong broken break breaks breaking fail fails failed failing failure failures crash crashes crashed
    crashing restart restarts restarted restarting error errors issue issues problem problems trouble
    slow slower down up unhealthy healthy health status ready unready pending stuck hang hangs hanging
    unavailable timeout timeouts outage alert alerts incident debug diagnose investigate troubleshoot
    check fix happening happened oom killed evicted unreachable refused latency 500 502 503 504 memory
    cpu full working work works running run runs start starting starts responding missing dying die dies
    dead why triage warnings warning events event logs log ok okay fine scheduled schedule image pull";

/// Words that glue a sentence together.
const GLUE: &str = "
    a an the is are was were be been being do does did has have had can can't cannot could will would
    should may might must i me my we us our you your it its it's he she they them their this that these
    those there here what what's whats which who whose when where how and or but not no none isn't
    aren't doesn't don't won't if then than so as at by for from in into of off on onto out over to with
    without about after before between during since under while please hey hi hello thanks thank ok all
    any anything some something every everything each more most much many few other another same such
    only just also too very really now currently today yesterday again still yet already ever never
    always often last latest recent recently first next previous current new old good bad best look
    looking see show list get give tell find explain describe know think want need help let let's make
    made go goes going keep keeps come use used using try seem seems say says said cause causes causing
    caused reason root affect affected affecting application applications app apps service services svc
    thing things stuff info information details detail summary overview state report question answer
    production prod environment via per vs one two three top usage yaml manifest output command
    cluster's there's i'm minutes hours minute hour day days related relevant named called ns count
    number consuming consume resource resources process processes free space left enough open else well
    back because due able unable like happen happens getting gets got access connect connection
    connections kind type time way right sure possible bring take takes name names subject context label labels severity reported instructions";

fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|own| own == word)
}

/// Whether a word asks about a cluster.
pub(crate) fn is_cluster(word: &str) -> bool {
    has(CLUSTER, word)
}

/// Whether a word asks about a machine.
pub(crate) fn is_host(word: &str) -> bool {
    has(HOST, word)
}

/// Whether a word asks about trouble.
pub(crate) fn is_trouble(word: &str) -> bool {
    has(TROUBLE, word)
}

/// Whether a word is part of the language rather than a name.
pub(crate) fn is_common(word: &str) -> bool {
    [CLUSTER, HOST, TROUBLE, GLUE].iter().any(|words| has(words, word))
}
