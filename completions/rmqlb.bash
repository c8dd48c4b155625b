# rmqlb(1) completion for bash 4.4 or newer.
# Written by python -m tools.manual from the code: change that instead.

# Offer what begins as the current word does, quoted as that is: names of contexts may hold anything.
_rmqlb_words() {
    local word quoted quote= typed=$cur
    case $cur in
        [\'\"]*) quote=${cur:0:1} typed=${cur:1} ;;
    esac
    for word; do
        if [[ -z $quote && $typed == *\\* ]]; then
            printf -v quoted %q "$word"
            [[ $quoted == "$typed"* ]] && COMPREPLY+=("$quoted")
        elif [[ $word == "$typed"* ]]; then
            case $quote in
                \') [[ $word == *\'* ]] || COMPREPLY+=("$word") ;;
                \") [[ $word == *[\"\$\`\\!]* ]] || COMPREPLY+=("$word") ;;
                *) printf -v quoted %q "$word" && COMPREPLY+=("$quoted") ;;
            esac
        fi
    done
}

# The same, where more follows without a blank.
_rmqlb_beginnings() {
    compopt -o nospace 2>/dev/null
    _rmqlb_words "$@"
}

_rmqlb_contexts() {
    local line names=() program=${COMP_WORDS[0]}
    [[ $program == '~/'* ]] && program=$HOME/${program:2}
    while IFS= read -r line; do
        line=${line#*,}
        names+=("${line%%,*}")
    done < <("$program" context list -q -o csv 2>/dev/null)
    _rmqlb_words "${names[@]:1}"
}

_rmqlb_files() {
    compopt -o default 2>/dev/null
}

_rmqlb_folders() {
    compopt -o dirnames 2>/dev/null
}

_rmqlb_at() {
    case $prev in
    esac
    case $cur in
        -*) _rmqlb_words --version --help ;;
        *) _rmqlb_words show-groups show-consumers fetch-routes show-route show-owners diagnose diff plan-rebalance plan-topic simulate-rebalance plan-rollout size-group sweep-failures simulate-send select-queue simulate-receive record check pipeline context config schema explain ;;
    esac
}

_rmqlb_at_show_groups() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|--watch|--rounds|-g|--group) :; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl prometheus; return ;;
        --section) _rmqlb_words groups findings; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --severity) _rmqlb_words error warning info; return ;;
        --fail-on) _rmqlb_beginnings groups-with-errors groups-with-warnings groups-unknown groups-offline unassigned duplicate-owners idle mismatches imbalance duplicate-client-ids lag 'unassigned[' 'duplicate-owners[' 'idle[' 'mismatches[' 'imbalance[' 'duplicate-client-ids[' 'lag[' 'consumers[' 'processes[' 'queues['; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --strategy-option --output --section --all --color --no-pager --quiet --debug --watch --rounds --group --severity --fail-on --help
}

_rmqlb_at_show_consumers() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|--watch|--rounds|-g|--group) :; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl; return ;;
        --section) _rmqlb_words consumers; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --strategy-option --output --section --all --color --no-pager --quiet --debug --watch --rounds --group --help
}

_rmqlb_at_fetch_routes() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--to|--redact-map) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-t|--topic|-g|--group|--every) :; return ;;
        -o|--output) _rmqlb_words json yaml jsonl; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --output --color --quiet --debug --topic --group --system --evidence --to --every --redact --redact-map --help
}

_rmqlb_at_show_route() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--map-address|--access-key|--tls-name|--watch|--rounds|-t|--topic) :; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl; return ;;
        --section) _rmqlb_words brokers queues; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --output --section --all --color --no-pager --quiet --debug --watch --rounds --topic --help
}

_rmqlb_at_show_owners() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|-t|--topic|--consumers|--watch|--rounds|--pop-share) :; return ;;
        --sdk) _rmqlb_words go cpp; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl prometheus; return ;;
        --section) _rmqlb_words owners mismatches pop offsets groups queues reasons consumers summary; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --topic --consumers --include-retry --explain --sdk --strategy-option --output --section --all --color --no-pager --quiet --debug --watch --rounds --strategy --pop-share --help
}

_rmqlb_at_diagnose() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--earlier) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|--interval|--looks|--watch|--rounds) :; return ;;
        --fail-on) _rmqlb_words error warning; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl prometheus; return ;;
        --section) _rmqlb_words groups findings rules evidence queues; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --all-groups --fail-on --earlier --interval --looks --stacks --strategy-option --output --section --all --color --no-pager --quiet --debug --watch --rounds --help
}

_rmqlb_at_diff() {
    case $prev in
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group) :; return ;;
        --password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl; return ;;
        --section) _rmqlb_words groups topics unexplained lag queues; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --fail-on) _rmqlb_beginnings groups-changed groups-added groups-removed topics-changed consumers-joined consumers-left strategies-changed moved newly-assigned newly-unassigned newly-duplicate-owners queues-added queues-removed pending unexplained lag-growth offsets-back; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --system --strategy-option --output --section --all --color --no-pager --quiet --debug --fail-on --help ;;
        *) _rmqlb_files ;;
    esac
}

_rmqlb_at_plan_rebalance() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|-t|--topic|--consumers|--watch|--rounds|--pop-share|--scale-to|--add|--remove|--replace|--add-broker|--remove-broker|--remove-master|--read-queues|--write-queues) :; return ;;
        --sdk) _rmqlb_words go cpp; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl; return ;;
        --section) _rmqlb_words groups strategies consumers moves pop queues summary; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL all; return ;;
        --to-strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --fail-on) _rmqlb_beginnings moved newly-assigned newly-unassigned added removed lag-moved idle unassigned duplicate-owners imbalance lag-unassigned lag-removed queues-of-duplicate-client-ids max-queues-per-consumer min-queues-per-consumer excess-moves mismatches observed-unassigned observed-duplicate-owners; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --topic --consumers --include-retry --explain --sdk --strategy-option --output --section --all --color --no-pager --quiet --debug --watch --rounds --strategy --pop-share --scale-to --add --remove --replace --to-strategy --add-broker --remove-broker --remove-master --read-queues --write-queues --changed --fail-on --help
}

_rmqlb_at_plan_topic() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--keys-file|--rates-since) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-t|--topic|--queues|--add-broker|--drain-broker|--move-to-cluster|-g|--group|--check-step) :; return ;;
        --message-type) _rmqlb_words NORMAL FIFO DELAY TRANSACTION MIXED PRIORITY LITE; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --sdk) _rmqlb_words java go cpp java-grpc go-grpc rust-grpc python-grpc nodejs-grpc cpp-grpc csharp-grpc; return ;;
        --proxy-mode) _rmqlb_words local cluster; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words steps commands waits groups keys brokers checked; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --topic --queues --add-broker --drain-broker --move-to-cluster --message-type --unordered --group --strategy --keys-file --sdk --proxy-mode --rates-since --check-step --strategy-option --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_simulate_rebalance() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--rates-since|--svg|--html) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|-t|--topic|--consumers|--for|--latency|--consume-time|--rate|--trials|--trial|--seed) :; return ;;
        --sdk) _rmqlb_words go cpp; return ;;
        --event) _rmqlb_beginnings 'join ' 'leave ' 'crash ' 'host-loss ' 'broker-down ' 'broker-loss ' 'restart-broker ' 'broker-up ' 'route-change ' 'pull-stall ' 'freeze ' 'restart ' 'rolling-restart ' 'strategy-change '; return ;;
        --client) _rmqlb_words '5.3.3' '5.3.2' '5.3.1' '5.3.0' '5.2.0' '5.1.4' '5.1.1' '5.1.0' '5.0.0' '4.9.8' '4.9.4' '4.9.3' '4.9.0' '4.8.0' '4.0.0'; return ;;
        --consumer-type) _rmqlb_words pull lite-pull assign; return ;;
        --consume-from) _rmqlb_words last first timestamp; return ;;
        --timer) _rmqlb_beginnings 'rebalance-wait=' 'rebalance-min=' 'route-poll=' 'heartbeat=' 'persist=' 'pull-delay=' 'pull-idle=' 'pull-hold=' 'lock-renewal=' 'lock-life=' 'lock-retry=' 'unlock-delay=' 'release-wait=' 'channel-expiry=' 'broker-scan=' 'socket-idle=' 'notify-batch=' 'rpc-timeout=' 'nameserver-expiry=' 'nameserver-scan=' 'registration=' 'start=' 'connect=' 'close='; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words timeline windows takeovers consumers events trials summary steps queues intervals groups producers; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --fail-on) _rmqlb_beginnings convergence-ms longest-gap-ms total-gap-ms longest-overlap-ms total-overlap-ms longest-outage-ms total-outage-ms unread-ms redelivered queues-with-gap queues-with-overlap queues-with-outage queues-with-gap-at-end queues-with-overlap-at-end queues-with-outage-at-end queues-unread-at-end taken 'convergence-ms[' 'longest-gap-ms[' 'total-gap-ms[' 'longest-overlap-ms[' 'total-overlap-ms[' 'longest-outage-ms[' 'total-outage-ms[' 'unread-ms[' 'redelivered[' 'queues-with-gap[' 'queues-with-overlap[' 'queues-with-outage[' 'queues-with-gap-at-end[' 'queues-with-overlap-at-end[' 'queues-with-outage-at-end[' 'queues-unread-at-end[' 'taken['; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --topic --consumers --include-retry --explain --sdk --event --for --all-new --broadcasting --client --orderly --consumer-type --consume-from --timer --latency --consume-time --rate --rates-since --trials --trial --seed --strategy-option --output --section --all --color --no-pager --quiet --debug --strategy --svg --html --fail-on --help
}

_rmqlb_at_plan_rollout() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--rates-since) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|-t|--topic|--consumers|--latency|--consume-time|--rate|--down|--pause|--at-once|--order|--trials|--seed) :; return ;;
        --sdk) _rmqlb_words go cpp; return ;;
        --client) _rmqlb_words '5.3.3' '5.3.2' '5.3.1' '5.3.0' '5.2.0' '5.1.4' '5.1.1' '5.1.0' '5.0.0' '4.9.8' '4.9.4' '4.9.3' '4.9.0' '4.8.0' '4.0.0'; return ;;
        --consumer-type) _rmqlb_words pull lite-pull assign; return ;;
        --consume-from) _rmqlb_words last first timestamp; return ;;
        --timer) _rmqlb_beginnings 'rebalance-wait=' 'rebalance-min=' 'route-poll=' 'heartbeat=' 'persist=' 'pull-delay=' 'pull-idle=' 'pull-hold=' 'lock-renewal=' 'lock-life=' 'lock-retry=' 'unlock-delay=' 'release-wait=' 'channel-expiry=' 'broker-scan=' 'socket-idle=' 'notify-batch=' 'rpc-timeout=' 'nameserver-expiry=' 'nameserver-scan=' 'registration=' 'start=' 'connect=' 'close='; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words choices order stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --strategy|--to-strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --restart) _rmqlb_words all; return ;;
        --ids) _rmqlb_words new same; return ;;
        --fail-on) _rmqlb_beginnings convergence-ms longest-gap-ms total-gap-ms longest-overlap-ms total-overlap-ms longest-outage-ms total-outage-ms unread-ms redelivered queues-with-gap queues-with-overlap queues-with-outage queues-with-gap-at-end queues-with-overlap-at-end queues-with-outage-at-end queues-unread-at-end taken takes-ms misassigned 'convergence-ms[' 'longest-gap-ms[' 'total-gap-ms[' 'longest-overlap-ms[' 'total-overlap-ms[' 'longest-outage-ms[' 'total-outage-ms[' 'unread-ms[' 'redelivered[' 'queues-with-gap[' 'queues-with-overlap[' 'queues-with-outage[' 'queues-with-gap-at-end[' 'queues-with-overlap-at-end[' 'queues-with-outage-at-end[' 'queues-unread-at-end[' 'taken['; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --topic --consumers --include-retry --sdk --client --orderly --consumer-type --consume-from --timer --latency --consume-time --rate --rates-since --strategy-option --output --section --all --color --no-pager --quiet --debug --strategy --restart --to-strategy --down --pause --at-once --order --ids --trials --seed --fail-on --help
}

_rmqlb_at_size_group() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--rates-since) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|-t|--topic|--max-imbalance|--survive|--max-utilisation|--consumers|--queues-per-broker|--rate|--consume-time|--threads|--trials|--share|--seed) :; return ;;
        --sdk) _rmqlb_words java go cpp; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL all; return ;;
        --fail-on) _rmqlb_beginnings unsatisfied consumers queues-per-broker imbalance idle; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words chart curve candidates topics; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --topic --include-retry --sdk --max-imbalance --no-idle --survive --survive-broker --max-utilisation --consumers --queues-per-broker --strategy --rate --rates-since --consume-time --threads --orderly --trials --share --seed --fail-on --strategy-option --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_sweep_failures() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--zones|-p|--policy|--html) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|-t|--topic|--orderly|--at-once|--zone|--today|--jobs) :; return ;;
        --lose) _rmqlb_words consumer broker master host zone; return ;;
        --fail-on) _rmqlb_beginnings counterexamples broken-cases broken-singles broken-already unwritable-topics unassigned imbalance idle moved lag-moved without-lock 'unassigned[' 'imbalance[' 'idle[' 'moved[' 'lag-moved[' 'without-lock['; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words counterexamples broken-already groups topics unjudged losses summary; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --topic --orderly --lose --at-once --zone --zones --policy --today --print-policy --jobs --html --fail-on --strategy-option --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_simulate_send() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--keys) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--map-address|--access-key|--tls-name|--fail|--latency|--route-poll|--messages|--rate|--for|--threads|--start-at|--seed|--send-retries|--send-timeout|--send-timeout-per-request|--exclude|--latency-max|--not-available-duration|--trials|--precision|-t|--topic) :; return ;;
        --nameserver-notices) _rmqlb_words never; return ;;
        --first-poll) _rmqlb_words random; return ;;
        --key-type) _rmqlb_words string int long; return ;;
        --client) _rmqlb_words '5.3.3' '5.3.2' '5.3.1' '5.3.0' '5.2.0' '5.1.4' '5.1.1' '5.1.0' '5.0.0' '4.9.8' '4.9.4' '4.9.3' '4.9.0' '4.8.0' '4.0.0'; return ;;
        --mode) _rmqlb_words sync async oneway; return ;;
        --latency-fault|--detector) _rmqlb_words on off; return ;;
        --sdk) _rmqlb_words java go cpp java-grpc go-grpc rust-grpc python-grpc nodejs-grpc cpp-grpc csharp-grpc; return ;;
        --proxy-mode) _rmqlb_words local cluster; return ;;
        --selector) _rmqlb_words hash random machine-room; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl; return ;;
        --section) _rmqlb_words attempts queues brokers keys failures timeline slices totals strategies clients sdks trials spreads lost exceptions; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --fail-on) _rmqlb_beginnings lost stored not-store-ok duplicated retried attempts failed-attempts retries failing-ms longest-send-ms 'share[' 'picks[' 'failed[' 'isolated-ms[' 'isolations['; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --fail --latency --nameserver-notices --route-poll --first-poll --messages --rate --for --threads --start-at --seed --keys --key-type --client --mode --latency-fault --detector --sdk --proxy-mode --send-retries --send-timeout --send-timeout-per-request --retry-not-store-ok --selector --exclude --latency-max --not-available-duration --output --section --all --color --no-pager --quiet --debug --trace --compare --compare-clients --compare-sdks --trials --precision --fail-on --topic --help
}

_rmqlb_at_select_queue() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--keys-file) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--map-address|--access-key|--tls-name|-t|--topic|-k|--key|--add-broker|--remove-broker|--write-queues) :; return ;;
        --sdk) _rmqlb_words java go cpp java-grpc go-grpc rust-grpc python-grpc nodejs-grpc cpp-grpc csharp-grpc; return ;;
        --proxy-mode) _rmqlb_words local cluster; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl; return ;;
        --section) _rmqlb_words moved keys pairs sdks; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --topic --key --keys-file --sdk --proxy-mode --add-broker --remove-broker --write-queues --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_simulate_receive() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|--broker|--processes|--loops|--await|--invisible|--batch|--consume-time|--error-pause|--round-trip|--rate|--messages|--for|--seed|--fail|--crash|--target-wait|--trials|-t|--topic) :; return ;;
        --broker-version) _rmqlb_words '5.3.3' '5.3.2' '5.3.1' '5.3.0' '5.2.0' '5.1.4' '5.1.1' '5.1.0' '5.0.0' '4.9.8' '4.9.4' '4.9.3' '4.9.0' '4.8.0' '4.0.0'; return ;;
        --type) _rmqlb_words simple push pop; return ;;
        --nameserver-notices) _rmqlb_words never; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words waits brokers failures crashes quantiles queues closed-forms totals messages; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --fail-on) _rmqlb_beginnings wait-mean-ms wait-p50-ms wait-p95-ms wait-p99-ms wait-max-ms back-mean-ms back-p50-ms back-p95-ms back-p99-ms back-max-ms left not-stored redelivered dead-lettered receives empty-receives failed-receives unpolled-ms receives-needed 'wait-mean-ms[' 'wait-p50-ms[' 'wait-p95-ms[' 'wait-p99-ms[' 'wait-max-ms[' 'receives[' 'unpolled-ms['; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --broker --broker-version --type --processes --loops --await --invisible --batch --fifo --consume-time --error-pause --round-trip --rate --messages --for --seed --fail --nameserver-notices --crash --output --section --all --color --no-pager --quiet --debug --target-wait --trials --trace --fail-on --topic --help
}

_rmqlb_at_record() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|--svg|--html|--against|--replay) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|-g|--group|-t|--topic|--every|--for|--event-at|--tolerance) :; return ;;
        --until) _rmqlb_words converged; return ;;
        --fail-on) _rmqlb_beginnings changed moved unassigned duplicate-owners unknown longest-gap-at-least-ms longest-gap-at-most-ms longest-overlap-at-least-ms longest-overlap-at-most-ms convergence-at-least-ms convergence-at-most-ms failed-looks differences other-owner not-yet later earlier; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown jsonl; return ;;
        --section) _rmqlb_words differences timeline consumers changes queues intervals comparison summary; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --group --topic --every --until --for --event-at --svg --html --fail-on --strategy-option --output --section --all --color --no-pager --quiet --debug --against --tolerance --replay --help
}

_rmqlb_at_check() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key|-p|--policy) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name|--today) :; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown junit sarif prometheus; return ;;
        --section) _rmqlb_words failed waived incomplete not-applicable rules waivers summary; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --fail-from) _rmqlb_words error warning info; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --strategy-option --output --section --all --color --no-pager --quiet --debug --policy --today --fail-from --print-policy --help
}

_rmqlb_at_pipeline() {
    case $prev in
    esac
    case $cur in
        -*) _rmqlb_words --help ;;
        *) _rmqlb_words generate ingest allocate score what-if size sweep producers history report run compact ;;
    esac
}

_rmqlb_at_pipeline_generate() {
    case $prev in
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words fleet faults damaged; return ;;
        --color) _rmqlb_words auto always never; return ;;
        --seed|--clusters|--brokers|--topics|--groups|--pairs|--queues|--consumers|--days|--first|--faults|--odd-names|--other-clients|--churn|--bad-files) :; return ;;
        --layout) _rmqlb_words 'json.gz' json jsonl; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --output --section --all --color --no-pager --quiet --debug --seed --clusters --brokers --topics --groups --pairs --queues --consumers --days --first --faults --odd-names --other-clients --churn --observed --not-observed --retry-queues --no-retry-queues --bad-files --layout --help ;;
        *) _rmqlb_folders ;;
    esac
}

_rmqlb_at_pipeline_ingest() {
    case $prev in
        --cluster|--conf) :; return ;;
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --cluster --only --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help ;;
        *) _rmqlb_files ;;
    esac
}

_rmqlb_at_pipeline_allocate() {
    case $prev in
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        --as-of|--conf) :; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --only --as-of --strategy --include-retry --strategy-option --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_score() {
    case $prev in
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --conf) :; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --only --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_what_if() {
    case $prev in
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        --as-of|--consumers|--conf) :; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --only --as-of --strategy --include-retry --consumers --strategy-option --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_size() {
    case $prev in
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        --as-of|--max-imbalance|--survive|--id-trials|--conf) :; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --only --as-of --strategy --include-retry --max-imbalance --no-idle --survive --survive-broker --id-trials --strategy-option --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_sweep() {
    case $prev in
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        --as-of|--conf) :; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --limit) _rmqlb_beginnings 'unassigned=' 'duplicateOwners=' 'imbalance=' 'idle=' 'minConsumers=' 'movedOnConsumerLoss=' 'movedOnBrokerLoss='; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --only --as-of --strategy --include-retry --limit --strategy-option --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_producers() {
    case $prev in
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        --as-of|--fail|--rate|--for|--threads|--send-retries|--send-timeout|--trials|--seed|--conf) :; return ;;
        --nameserver-notices) _rmqlb_words never; return ;;
        --client) _rmqlb_words '5.3.3' '5.3.2' '5.3.1' '5.3.0' '5.2.0' '5.1.4' '5.1.1' '5.1.0' '5.0.0' '4.9.8' '4.9.4' '4.9.3' '4.9.0' '4.8.0' '4.0.0'; return ;;
        --latency-fault) _rmqlb_words on off; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --only --as-of --fail --each --nameserver-notices --rate --for --threads --client --latency-fault --send-retries --send-timeout --trials --seed --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_history() {
    case $prev in
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --conf) :; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --only --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_report() {
    case $prev in
        --to|-w|--warehouse) _rmqlb_folders; return ;;
        --top|--conf) :; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --to --top --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_pipeline_run() {
    case $prev in
        --cluster|--top|--as-of|--consumers|--max-imbalance|--survive|--id-trials|--fail|--rate|--for|--threads|--send-retries|--send-timeout|--trials|--seed|--conf) :; return ;;
        --to|-w|--warehouse) _rmqlb_folders; return ;;
        --only) _rmqlb_beginnings 'cluster=' 'group=' 'topic=' 'date='; return ;;
        --strategy) _rmqlb_words AVG AVG_BY_CIRCLE CONFIG MACHINE_ROOM CONSISTENT_HASH MACHINE_ROOM_NEARBY PIN PIN_OVER_ALL; return ;;
        --limit) _rmqlb_beginnings 'unassigned=' 'duplicateOwners=' 'imbalance=' 'idle=' 'minConsumers=' 'movedOnConsumerLoss=' 'movedOnBrokerLoss='; return ;;
        --strategy-option) _rmqlb_beginnings 'virtual-nodes=' 'idc=' 'queues=' 'inner=' 'broker-zone=' 'client-zone=' 'host=' 'pin='; return ;;
        --nameserver-notices) _rmqlb_words never; return ;;
        --client) _rmqlb_words '5.3.3' '5.3.2' '5.3.1' '5.3.0' '5.2.0' '5.1.4' '5.1.1' '5.1.0' '5.0.0' '4.9.8' '4.9.4' '4.9.3' '4.9.0' '4.8.0' '4.0.0'; return ;;
        --latency-fault) _rmqlb_words on off; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --cluster --to --top --only --as-of --strategy --include-retry --consumers --max-imbalance --no-idle --survive --survive-broker --id-trials --limit --strategy-option --fail --each --nameserver-notices --rate --for --threads --client --latency-fault --send-retries --send-timeout --trials --seed --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help ;;
        *) _rmqlb_files ;;
    esac
}

_rmqlb_at_pipeline_compact() {
    case $prev in
        --keep|--conf) :; return ;;
        -w|--warehouse) _rmqlb_folders; return ;;
        --master) _rmqlb_words 'local[*]' 'spark://' 'sc://' yarn 'k8s://'; return ;;
        --log-file) _rmqlb_files; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words stages; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --keep --warehouse --force --master --conf --log-file --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_context() {
    case $prev in
    esac
    case $cur in
        -*) _rmqlb_words --help ;;
        *) _rmqlb_words add list use show remove ;;
    esac
}

_rmqlb_at_context_add() {
    case $prev in
        -s|--source|--ca-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --user|--access-key|--tls-name|--proxy|--map-address|--source-timeout|--source-retries) :; return ;;
        --secret) _rmqlb_beginnings 'file:' 'env:' 'keyring:'; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words contexts context; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --source --user --access-key --secret --ca-file --client-cert --client-key --tls-name --proxy --map-address --source-timeout --source-retries --use --replace --output --section --all --color --no-pager --quiet --debug --help ;;
        *) : ;;
    esac
}

_rmqlb_at_context_list() {
    case $prev in
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words contexts context; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_context_use() {
    case $prev in
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words contexts context; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --none --output --section --all --color --no-pager --quiet --debug --help ;;
        *) _rmqlb_contexts ;;
    esac
}

_rmqlb_at_context_show() {
    case $prev in
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words contexts context; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --output --section --all --color --no-pager --quiet --debug --help ;;
        *) _rmqlb_contexts ;;
    esac
}

_rmqlb_at_context_remove() {
    case $prev in
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words contexts context; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --output --section --all --color --no-pager --quiet --debug --help ;;
        *) _rmqlb_contexts ;;
    esac
}

_rmqlb_at_config() {
    case $prev in
    esac
    case $cur in
        -*) _rmqlb_words --help ;;
        *) _rmqlb_words show ;;
    esac
}

_rmqlb_at_config_show() {
    case $prev in
        -s|--source|--password-file|--ca-file|--secret-key-file|--client-cert|--client-key) _rmqlb_files; return ;;
        --context) _rmqlb_contexts; return ;;
        --user|--source-timeout|--deadline|--source-retries|--max-size|--proxy|--map-address|--access-key|--tls-name) :; return ;;
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words settings; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    _rmqlb_words --source --context --user --password-file --ca-file --source-timeout --deadline --source-retries --max-size --proxy --map-address --access-key --secret-key-file --client-cert --client-key --tls-name --output --section --all --color --no-pager --quiet --debug --help
}

_rmqlb_at_schema() {
    case $prev in
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words schemas keys; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --output --section --all --color --no-pager --quiet --debug --help ;;
        *) _rmqlb_words fetch-routes show-groups show-consumers show-route show-owners diagnose diff plan-rebalance plan-topic simulate-rebalance plan-rollout size-group sweep-failures simulate-send select-queue simulate-receive record check schema explain 'rmqlb/snapshot' 'rmqlb/groups' 'rmqlb/consumers' 'rmqlb/route' 'rmqlb/owners' 'rmqlb/owners-of-groups' 'rmqlb/diagnosis' 'rmqlb/diagnosis-of-groups' 'rmqlb/diff' 'rmqlb/diff-prediction' 'rmqlb/plan' 'rmqlb/plan-of-groups' 'rmqlb/topic-plan' 'rmqlb/simulate-rebalance' 'rmqlb/simulate-rebalance-of-groups' 'rmqlb/plan-rollout' 'rmqlb/group-size' 'rmqlb/sweep-failures' 'rmqlb/send' 'rmqlb/attempt' 'rmqlb/lost-message' 'rmqlb/key-queues' 'rmqlb/receive' 'rmqlb/change' 'rmqlb/record' 'rmqlb/record-line' 'rmqlb/check' 'rmqlb/pipeline' 'rmqlb/fleet' 'rmqlb/contexts' 'rmqlb/context' 'rmqlb/config' 'rmqlb/schemas' 'rmqlb/explanations' 'rmqlb/error' ;;
    esac
}

_rmqlb_at_explain() {
    case $prev in
        -o|--output) _rmqlb_words table plain json yaml csv markdown; return ;;
        --section) _rmqlb_words explanations; return ;;
        --color) _rmqlb_words auto always never; return ;;
    esac
    case $cur in
        -*) _rmqlb_words --output --section --all --color --no-pager --quiet --debug --help ;;
        *) _rmqlb_words custom-unassigned custom-duplicate-owners custom-order custom-varies custom-throws pin-over-all pin-no-consumer selector-throws routes-differ no-read-queues one-broker spans-clusters order-topic no-address no-master not-readable not-writable read-below-write read-above-write duplicate-client-id unassigned-queues duplicate-owners pull-consumers broker-rebalance mixed-strategies split-consumer-view broker-silent broker-gone consumer-gone broker-unreachable-from-consumer stale-connections subscription-mismatch mixed-sdks assumed-sdk assumed-pop-share assignment-mismatch assignments-not-asked broker-strategy request-modes-unknown frozen-consumer blocked-consumer clock-ahead consume-failing hot-queue flow-control pull-stopped head-blocked lock-lost dropped-but-consuming slow-consumer lag-growing lag-stalled offset-rewound more-consumers-than-queues idle-by-strategy surprising-order mismatch strategy-differs assumed-strategy matches-nothing owners-not-planned starts-later group-left-out group-not-seen no-pager starts-not-asked placeholder-ids no-route not-subscribed unread info snapshots-swapped nothing-in-common not-compared unexplained-owners not-moved-yet all-lost failure-not-reached timeouts-not-retried hash-remaps before-route-poll healthy-isolated skewed await-limited invisible-limited longer-than-invisible queues-beyond-100 arrivals-ended not-in-version assumed-latency sdk-not-simulated unpredictable-sdk one-sdk assumed-limits assumed-rate assumed-producers producers-left-out new-topic broadcasting own-offset-file mixed-versions other-language new-ids new-broker static-queues consumer-type-unknown assigns-itself slaves-go-on orderly-group not-converged badly-owned-anyway stays-mixed several-away all-at-once expired-waiver unused-waiver no-such-context quarantined untimed late-snapshots uneven-lag imbalanced flapping usage strategy-option-unused given-twice no-source unknown-source password-in-url hosts-over-http no-secret secret-not-private config-invalid config-not-private no-home context-not-found context-exists which-context policy-invalid zones-invalid unknown-zone too-many-cases empty-zone in-no-zone which-group which-topic unknown-strategy unknown-sdk strategy-not-in-sdk custom-code two-of-one-time custom-raised custom-answer unknown-figure unknown-broker unknown-cluster nothing-changes step-not-known static-topic ring-too-large too-many-steps already-in-group not-in-group contradicting-limits too-many-sizes rate-unknown consume-time-unknown contradicting-changes cannot-write no-warehouse warehouse-busy folder-not-shared needs-extra needs-java not-a-result not-of-this data topic-not-found not-earlier group-not-found consumers-unknown no-consumer-online behind-proxy broadcasting-group pop-consumption unknown-strategy-class settings-unknown message-type-unknown searched-in-part no-readable-queue no-writable-queue bad-order-config allocation figure-not-seen document cannot-read not-recognised newer-format group-not-named topic-not-named too-large table-not-found endpoint refused access-denied unreachable no-answer deadline connection-broke tls-failed login-needed login-failed not-a-dashboard protocol output-lost unexpected 0 1 2 3 4 5 130 ;;
    esac
}


_rmqlb() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= word
    COMPREPLY=()
    # Words are cut at = and : too. Behind a long option's = stands its value, behind others what only the user knows.
    [[ $cur == : || $prev == : ]] && return
    if [[ $cur == = ]]; then
        [[ $prev == --* ]] || return
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
        [[ $prev == --* ]] || return
    fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $path/$word in
            '/show-groups') path=show-groups ;;
            '/show-consumers') path=show-consumers ;;
            '/fetch-routes') path=fetch-routes ;;
            '/show-route') path=show-route ;;
            '/show-owners') path=show-owners ;;
            '/diagnose') path=diagnose ;;
            '/diff') path=diff ;;
            '/plan-rebalance') path=plan-rebalance ;;
            '/plan-topic') path=plan-topic ;;
            '/simulate-rebalance') path=simulate-rebalance ;;
            '/plan-rollout') path=plan-rollout ;;
            '/size-group') path=size-group ;;
            '/sweep-failures') path=sweep-failures ;;
            '/simulate-send') path=simulate-send ;;
            '/select-queue') path=select-queue ;;
            '/simulate-receive') path=simulate-receive ;;
            '/record') path=record ;;
            '/check') path=check ;;
            '/pipeline') path=pipeline ;;
            'pipeline/generate') path='pipeline generate' ;;
            'pipeline/ingest') path='pipeline ingest' ;;
            'pipeline/allocate') path='pipeline allocate' ;;
            'pipeline/score') path='pipeline score' ;;
            'pipeline/what-if') path='pipeline what-if' ;;
            'pipeline/size') path='pipeline size' ;;
            'pipeline/sweep') path='pipeline sweep' ;;
            'pipeline/producers') path='pipeline producers' ;;
            'pipeline/history') path='pipeline history' ;;
            'pipeline/report') path='pipeline report' ;;
            'pipeline/run') path='pipeline run' ;;
            'pipeline/compact') path='pipeline compact' ;;
            '/context') path=context ;;
            'context/add') path='context add' ;;
            'context/list') path='context list' ;;
            'context/use') path='context use' ;;
            'context/show') path='context show' ;;
            'context/remove') path='context remove' ;;
            '/config') path=config ;;
            'config/show') path='config show' ;;
            '/schema') path=schema ;;
            '/explain') path=explain ;;
        esac
    done
    case $path in
        '') _rmqlb_at ;;
        show-groups) _rmqlb_at_show_groups ;;
        show-consumers) _rmqlb_at_show_consumers ;;
        fetch-routes) _rmqlb_at_fetch_routes ;;
        show-route) _rmqlb_at_show_route ;;
        show-owners) _rmqlb_at_show_owners ;;
        diagnose) _rmqlb_at_diagnose ;;
        diff) _rmqlb_at_diff ;;
        plan-rebalance) _rmqlb_at_plan_rebalance ;;
        plan-topic) _rmqlb_at_plan_topic ;;
        simulate-rebalance) _rmqlb_at_simulate_rebalance ;;
        plan-rollout) _rmqlb_at_plan_rollout ;;
        size-group) _rmqlb_at_size_group ;;
        sweep-failures) _rmqlb_at_sweep_failures ;;
        simulate-send) _rmqlb_at_simulate_send ;;
        select-queue) _rmqlb_at_select_queue ;;
        simulate-receive) _rmqlb_at_simulate_receive ;;
        record) _rmqlb_at_record ;;
        check) _rmqlb_at_check ;;
        pipeline) _rmqlb_at_pipeline ;;
        'pipeline generate') _rmqlb_at_pipeline_generate ;;
        'pipeline ingest') _rmqlb_at_pipeline_ingest ;;
        'pipeline allocate') _rmqlb_at_pipeline_allocate ;;
        'pipeline score') _rmqlb_at_pipeline_score ;;
        'pipeline what-if') _rmqlb_at_pipeline_what_if ;;
        'pipeline size') _rmqlb_at_pipeline_size ;;
        'pipeline sweep') _rmqlb_at_pipeline_sweep ;;
        'pipeline producers') _rmqlb_at_pipeline_producers ;;
        'pipeline history') _rmqlb_at_pipeline_history ;;
        'pipeline report') _rmqlb_at_pipeline_report ;;
        'pipeline run') _rmqlb_at_pipeline_run ;;
        'pipeline compact') _rmqlb_at_pipeline_compact ;;
        context) _rmqlb_at_context ;;
        'context add') _rmqlb_at_context_add ;;
        'context list') _rmqlb_at_context_list ;;
        'context use') _rmqlb_at_context_use ;;
        'context show') _rmqlb_at_context_show ;;
        'context remove') _rmqlb_at_context_remove ;;
        config) _rmqlb_at_config ;;
        'config show') _rmqlb_at_config_show ;;
        schema) _rmqlb_at_schema ;;
        explain) _rmqlb_at_explain ;;
    esac
}

complete -F _rmqlb rmqlb
