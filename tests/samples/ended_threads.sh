# Prints how many of its environment variables are Sojourn's, and its threads once all but one have ended.
env | grep -c SOJOURN_
for i in $(seq 3000); do
    [ "$(ls /proc/$$/task | wc -l)" = 1 ] && break
    sleep 0.1
done
ls /proc/$$/task | wc -l
