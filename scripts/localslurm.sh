#!/bin/bash
# A real Slurm on one machine, without systemd and on loopback alone: localslurm.sh DIR ACTION
#
#   start            start what does not run: munged, slurmctld and the nodes
#   stop             end all of it, jobs too, and forget them
#   status           what runs, with pids
#   env              what a shell has to source to use it: SLURM_CONF, and LOCALSLURM_SHARED for DIR/shared
#   in NODE COMMAND  run a command as root on a node
# Faults, which ordinary users can cause too, so that their tests can:
#   down NODE        its power fails: all of its processes are killed; `up` brings it back with an empty disk
#   up               start again what was killed; nodes are in service again
#   fill NODE        the disk of /tmp and $TMPDIR becomes full, until `free NODE`
#   kill slurmd NODE, kill slurmctld
#
# It is made as unpleasant as real clusters are. Each node has its own host name, processes and files: of this machine it
# sees the system, and of all else only DIR/shared, where everybody may write. /tmp, /var/tmp and the users' homes are on
# the node's own disk; $TMPDIR is made for a job and removed with it. Batch jobs get nothing of their submitter's
# environment (--export=NONE), there is no command module, no sacct, and memory limits are enforced.
#
# Needs root, loop devices, and on Debian or Ubuntu:
#   apt-get install --no-install-recommends slurmctld slurmd slurm-client munge
# LOCALSLURM_NODES (2), LOCALSLURM_CPUS (4) and LOCALSLURM_MEMORY_MB (8000) say what start makes; cores and memory of a
# node are pretended. DIR is a folder that ordinary users can enter, and not in /tmp, which each node has of its own.
set -euo pipefail
usage="usage: localslurm.sh DIR start|stop|status|env|in NODE COMMAND ...|down|fill|free NODE|up|kill DAEMON [NODE]"
PATH=$PATH:/usr/sbin:/sbin

fail() {
    printf 'localslurm: error: %s\n' "$*" >&2
    exit "${status:-1}"
}

# --- daemons --------------------------------------------------------------------------------------------------------

# The pid of a daemon, if it lives: a pid may have gone to another program, and a dead one may be a zombie for a while.
alive() {
    local pid
    pid=$(cat "$dir/run/$1.pid" 2>/dev/null) && [ -n "$pid" ] || return 1
    # Debian's binaries are named slurmctld-wlm and the like.
    [[ $(readlink "/proc/$pid/exe") == */"${1%%.*}"* ]] && echo "$pid"
}

# Nodes are named by a pid file of the unshare that is their parent.
nodes() { (cd "$dir/run" && ls -1) 2>/dev/null | sed -n 's/^unshare\.\(.*\)\.pid$/\1/p'; }

# The pid, here, of a node's first process.
first_process() {
    local parent
    parent=$(alive "unshare.$1") && pgrep -P "$parent"
}

# The pid, here, of a node's slurmd; its own pid file has the one that the node knows.
slurmd_of() {
    local first
    first=$(first_process "$1") && pgrep --ns "$first" --nslist pid -x slurmd
}

end() {
    local pid
    for signal in "${@:2}"; do
        pid=$(alive "$1") || return 0
        kill "-$signal" "$pid" 2>/dev/null || true
        for _ in $(seq 50); do
            alive "$1" >/dev/null || return 0
            sleep 0.1
        done
    done
}

# --- what a node is --------------------------------------------------------------------------------------------------

# Runs in a mount namespace of its own: a new root that has the system and DIR/shared of the old one.
make_root() {
    local root=$dir/nodes/$1/root own=$dir/nodes/$1 name
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 node "$root"
    for name in usr etc opt dev sys bin sbin lib lib32 lib64 libx32; do
        if [ -L "/$name" ]; then
            cp -a "/$name" "$root/$name"
        elif [ -d "/$name" ]; then
            mkdir "$root/$name" && mount --rbind "/$name" "$root/$name"
        fi
    done
    mkdir -p "$root"/{proc,run/lock,var/{log,cache,lib,spool,tmp},home,root,mnt,tmp,old}
    ln -s /run "$root/var/run"
    chmod 700 "$root/root"
    mount -t proc proc "$root/proc"
    mount -o loop "$own/disk.img" "$root/mnt"
    for name in home tmp var/tmp; do
        mkdir -p "$root/mnt/$name" && mount --bind "$root/mnt/$name" "$root/$name"
    done
    chmod 1777 "$root"/{tmp,var/tmp}
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    # Apptainer mounts its sessions there.
    [ ! -d /var/lib/apptainer ] || cp -a /var/lib/apptainer "$root/var/lib/"
    mount --bind "$own/hosts" "$root/etc/hosts"
    for name in etc run log shared "nodes/$1/spool"; do
        mkdir -p "$root$dir/$name" && mount --bind "$dir/$name" "$root$dir/$name"
    done
    cd "$root"
    pivot_root . old
    umount -l /old
    rmdir /old
}

# The first process of a node: it starts slurmd and reaps what loses its parent.
run_node() {
    hostname "$1"
    make_root "$1"
    slurmd -f "$SLURM_CONF" -N "$1"
    trap : TERM
    while :; do
        sleep infinity &
        wait $! || true
    done
}

start_node() {
    local own=$dir/nodes/$1
    if first_process "$1" >/dev/null; then
        slurmd_of "$1" >/dev/null || on_node "$1" slurmd -f "$SLURM_CONF" -N "$1"
        return
    fi
    mkdir -p "$own"/{root,spool}
    rm -f "$own/disk.img"
    truncate -s "${disk_gb}G" "$own/disk.img"
    mkfs.ext4 -q -m 0 -O ^has_journal "$own/disk.img"
    { echo "127.0.0.1 localhost $(hostname -s)" && sed 's/^/127.0.0.1 /' "$dir/etc/nodes"; } >"$own/hosts"
    # slurmd would let nobody but root read its log, and what it launched stands there alone. Ids of jobs begin anew.
    : >"$dir/log/slurmd.$1.log" && chmod 644 "$dir/log/slurmd.$1.log"
    setsid unshare --mount --pid --uts --ipc --fork --kill-child \
        "$here/localslurm.sh" "$dir" run-node "$1" 9>&- </dev/null >"$dir/log/node.$1.log" 2>&1 &
    echo $! >"$dir/run/unshare.$1.pid"
}

on_node() {
    local pid
    pid=$(first_process "$1") || fail "node $1 does not run"
    nsenter --target "$pid" --mount --pid --uts --ipc --wd=/ -- "${@:2}"
}

down() {
    end "unshare.$1" KILL
    rm -f "$dir/run/unshare.$1.pid"
}

# --- faults by ordinary users ------------------------------------------------------------------------------------------

is_fault() {
    case "$*" in
        up | "kill slurmctld") true ;;
        "down n"* | "fill n"* | "free n"* | "kill slurmd n"*) [[ " $(tr '\n' ' ' <"$dir/etc/nodes")" == *" ${*: -1} "* ]] ;;
        *) false ;;
    esac
}

# Reserve what is free, in ever smaller pieces, so that nothing is written. A little is left for the folders of jobs: Slurm
# takes a node where none can be made out of service.
# shellcheck disable=SC2016  # of the shell on the node
fill='fallocate -l 1M /mnt/spare
for size in 1G 64M 4M 64k; do
    while fallocate -l $size "$(mktemp -u /mnt/full.XXXXXX)" 2>/dev/null; do :; done
done
rm /mnt/spare'

fault() {
    case "$*" in
        up) start ;;
        "down "*) down "$2" ;;
        "fill "*) on_node "$2" bash -c "$fill" ;;
        "free "*) on_node "$2" bash -c 'rm -f /mnt/full.*' ;;
        "kill slurmctld") end slurmctld KILL ;;
        "kill slurmd "*) kill -KILL "$(slurmd_of "$3")" ;;
    esac
}

# Root's process that causes the faults that ordinary users ask for, one after the other.
run_operator() {
    local id words
    exec 8<>"$dir/run/operator"
    while read -r id words <&8; do
        # shellcheck disable=SC2086  # words
        if [[ $id =~ ^[0-9.]+$ ]] && is_fault $words; then
            status=0
            "$here/localslurm.sh" "$dir" $words >&2 || status=$?
            echo "$id $status" >>"$dir/log/operator"
        fi
    done
}

ask_operator() {
    local id=$$.$EPOCHREALTIME answer
    is_fault "$@" || status=4 fail "only root can do that, or there is no such node: $*"
    echo "$id $*" >"$dir/run/operator"
    for _ in $(seq 600); do
        answer=$(sed -n "s/^$id //p" "$dir/log/operator")
        [ -z "$answer" ] || exit "$answer"
        sleep 0.1
    done
    fail "no answer within a minute: $*"
}

# --- configuration ----------------------------------------------------------------------------------------------------

# One for each name.
free_ports() {
    python3 - "$@" <<'PY'
import socket, sys
sockets = [socket.socket() for _ in sys.argv[1:]]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in sockets])
PY
}

write_configuration() {
    local host ports name number=0
    host=$(hostname -s)
    seq -f 'n%.0f' "${LOCALSLURM_NODES:-2}" >"$dir/etc/nodes"
    # shellcheck disable=SC2046  # one a word
    free_ports slurmctld $(cat "$dir/etc/nodes") >"$dir/etc/ports"
    read -r -a ports <"$dir/etc/ports"
    cat >"$dir/etc/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A job that is queued again waits for this long: credentials of its first life must have expired.
AuthInfo=socket=$dir/run/munge.socket,cred_expire=5
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdSpoolDir=$dir/nodes/%n/spool
SlurmdPidFile=$dir/run/slurmd.%n.pid
SlurmdLogFile=$dir/log/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
MailProg=/bin/true
# No control groups, no binding to cores, no MPI, no database.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$dir/log/jobcomp.txt
Prolog=$dir/etc/prolog.sh
TaskProlog=$dir/etc/task-prolog.sh
Epilog=$dir/etc/epilog.sh
CliFilterPlugins=lua
# Believe the pretended cores and memory. The node with most cores free comes first, so that arrays spread.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory,CR_LLN
DefMemPerCPU=500
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=100000,bf_interval=2
MaxArraySize=10001
# Quick to notice, quick to give up.
MinJobAge=3600
KillWait=3
SlurmdTimeout=10
SlurmctldTimeout=10
InactiveLimit=0
CompleteWait=0
UnkillableStepTimeout=15
MessageTimeout=10
TCPTimeout=2
ReturnToService=2
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
    while read -r name; do
        number=$((number + 1))
        echo "NodeName=$name NodeHostname=$name NodeAddr=127.0.0.1 Port=${ports[number]}" \
            "CPUs=${LOCALSLURM_CPUS:-4} RealMemory=${LOCALSLURM_MEMORY_MB:-8000} State=UNKNOWN"
    done <"$dir/etc/nodes" >>"$dir/etc/slurm.conf"
    cat >>"$dir/etc/slurm.conf" <<CONF
PartitionName=main Nodes=ALL Default=YES MaxTime=1-0 State=UP PriorityTier=1 PreemptMode=REQUEUE OverSubscribe=NO
PartitionName=urgent Nodes=ALL MaxTime=1-0 State=UP PriorityTier=9 PreemptMode=OFF OverSubscribe=NO
CONF
    write_hooks
    printf 'export SLURM_CONF=%q\nexport LOCALSLURM_SHARED=%q\n' "$SLURM_CONF" "$dir/shared" >"$dir/env.sh"
}

write_hooks() {
    cat >"$dir/etc/cli_filter.lua" <<'LUA'
function slurm_cli_setup_defaults(options, early)
    if options["type"] == "sbatch" then
        options["export"] = "NONE"
    end
    return slurm.SUCCESS
end
function slurm_cli_pre_submit(options, offset) return slurm.SUCCESS end
function slurm_cli_post_submit(offset, job, step) return slurm.SUCCESS end
LUA
    # Root, on the node, before a job's first process: its $TMPDIR, and a home that holds nothing.
    cat >"$dir/etc/prolog.sh" <<'SH'
#!/bin/bash
install -d -m 700 -o "$SLURM_JOB_UID" -g "$(id -g "$SLURM_JOB_UID")" "/tmp/job.$SLURM_JOB_ID" || exit 1
home=$(getent passwd "$SLURM_JOB_UID" | cut -d: -f6)
case $home in
    /home/*) [ -d "$home" ] || install -d -m 700 -o "$SLURM_JOB_UID" -g "$(id -g "$SLURM_JOB_UID")" "$home" ;;
esac
exit 0
SH
    # The user, before each task: lines as these are variables of the task.
    cat >"$dir/etc/task-prolog.sh" <<'SH'
#!/bin/bash
echo "export TMPDIR=/tmp/job.$SLURM_JOB_ID"
SH
    # Root, after a job's last process: nothing of the job is left.
    cat >"$dir/etc/epilog.sh" <<'SH'
#!/bin/bash
for file in $(grep -lzx "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${file#/proc/} pid=${pid%/environ}
    [ "$pid" = $$ ] || [ "$(stat -c %u "/proc/$pid" 2>/dev/null)" != "$SLURM_JOB_UID" ] || kill -9 "$pid" 2>/dev/null
done
rm -rf --one-file-system "/tmp/job.$SLURM_JOB_ID"
exit 0
SH
    chmod 755 "$dir"/etc/*.sh
}

# --- actions ---------------------------------------------------------------------------------------------------------

idle() { timeout 5 sinfo -h -N -p main -o %T 2>/dev/null | grep -cE '^(idle|mixed|allocated)$' || true; }

start() {
    local program name
    for program in munged slurmctld slurmd sbatch mkfs.ext4 nsenter; do
        command -v $program >/dev/null ||
            status=3 fail "$program is missing: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
    done
    mkdir -p "$dir"/{etc,run,log,state,munge,shared,nodes}
    chmod 755 "$dir" "$dir"/{etc,run,log} && chmod 700 "$dir"/{munge,state,nodes} && chmod 1777 "$dir/shared"
    [ -e "$dir/munge/key" ] || (umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
    # Two starts at a time: one waits and finds all done. Daemons must not inherit the lock.
    exec 9>"$dir/lock"
    flock 9
    [ -e "$dir/env.sh" ] || write_configuration
    alive munged >/dev/null ||
        munged --key-file="$dir/munge/key" --socket="$dir/run/munge.socket" --pid-file="$dir/run/munged.pid" \
            --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" --num-threads=2 9>&-
    alive slurmctld >/dev/null || slurmctld -f "$SLURM_CONF" 9>&-
    while read -r name; do start_node "$name" </dev/null; done <"$dir/etc/nodes"
    alive bash.operator >/dev/null || start_operator
    # A controller that lost its state takes nodes out of service that still run a job which it starts anew.
    while read -r name; do scontrol update "nodename=$name" state=resume 2>/dev/null || true; done <"$dir/etc/nodes"
    for _ in $(seq 300); do
        [ "$(idle)" != "$(wc -l <"$dir/etc/nodes")" ] || return 0
        sleep 0.1
    done
    tail -n 15 "$dir"/log/*.log >&2
    fail "the nodes do not come up"
}

start_operator() {
    rm -f "$dir/run/operator"
    mkfifo -m 622 "$dir/run/operator"
    : >"$dir/log/operator"
    setsid "$here/localslurm.sh" "$dir" run-operator 9>&- </dev/null >"$dir/log/operator.log" 2>&1 &
    echo $! >"$dir/run/bash.operator.pid"
}

stop() {
    local name
    end bash.operator KILL
    for name in $(nodes); do down "$name"; done
    end slurmctld TERM KILL
    end munged TERM KILL
    rm -rf "${dir:?}"/{run,state,nodes,env.sh}
}

show_status() {
    local name
    for name in munged slurmctld; do echo "$name $(alive "$name" || echo down)"; done
    for name in $(nodes); do echo "slurmd.$name $(slurmd_of "$name" || echo down)"; done
    timeout 5 sinfo -N -p main -o "%N %T %C" || true
}

[ $# -ge 2 ] || status=4 fail "$usage"
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=false
[ "$(id -u)" != 0 ] || root=true
dir=$(realpath -m -- "$1")
shift
case $dir/ in /tmp/* | /var/tmp/* | /dev/* | /proc/* | /run/* | *[!A-Za-z0-9._/-]*)
    status=4 fail "$dir: choose a folder of letters, digits and . _ - that is not in /tmp, which each node has of its own" ;;
esac
export SLURM_CONF=$dir/etc/slurm.conf
disk_gb=16

case $1 in
    env) cat "$dir/env.sh" ;;
    start | stop | status | in | run-node | run-operator)
        $root || status=3 fail "this needs root"
        case $1 in
            in) [ $# -ge 3 ] || status=4 fail "$usage" && on_node "${@:2}" ;;
            run-*) run_"${1#run-}" "${@:2}" ;;
            status) show_status ;;
            *) "$1" ;;
        esac ;;
    up | down | fill | free | kill)
        $root || ask_operator "$@"
        is_fault "$@" || status=4 fail "$usage"
        fault "$@" ;;
    *) status=4 fail "$usage" ;;
esac
