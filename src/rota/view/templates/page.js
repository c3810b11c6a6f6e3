const picture=document.querySelector('svg.rota'),plot=picture.querySelector('svg.plot'),
  names=picture.querySelector('.names'),head=picture.querySelector('.head'),base=picture.width.baseVal.value,
  scroll=document.querySelector('.scroll'),story=document.querySelector('.story'),
  range=document.querySelector('.tools input');
function stretch(){
  const least=Math.max(base,scroll.clientWidth),width=least*2**range.value,inner=width-margin;
  picture.setAttribute('width',width);plot.setAttribute('width',inner);
  for(const label of plot.querySelectorAll('text[data-need]'))
    label.classList.toggle('tight',label.dataset.share*inner<+label.dataset.need);
  ticks(inner);stay();
}
const steps=[4,8,16,32,64];for(let power=100;power<1e15;power*=10)steps.push(power,2*power,5*power);
function ticks(inner){
  const axis=plot.querySelector('.axis'),span=+axis.dataset.span,step=steps.find(step=>step/span*inner>=70)||span,
    {top,bottom}=axis.dataset,parts=[];
  for(let time=0;time<=span;time+=step){
    const at=`${100*time/span}%`;
    parts.push(`<line x1="${at}" x2="${at}" y1="${top-6}" y2="${bottom}" class="grid"/>`,
      `<text x="${at}" y="${top-10}" class="tiny faint mid halo">${time.toLocaleString('en')}</text>`);
  }
  axis.innerHTML=parts.join('');
}
let held=null;
scroll.addEventListener('pointerdown',event=>{held={x:event.clientX,left:scroll.scrollLeft};});
addEventListener('pointermove',event=>{if(held)scroll.scrollLeft=held.left-(event.clientX-held.x);});
addEventListener('pointerup',()=>{held=null;});
scroll.addEventListener('wheel',event=>{
  if(!event.ctrlKey)return;
  event.preventDefault();
  const left=scroll.getBoundingClientRect().left,at=event.clientX-left+scroll.scrollLeft-margin,before=plot.width.baseVal.value;
  range.value=+range.value-Math.sign(event.deltaY)*.25;stretch();
  scroll.scrollLeft+=at*(plot.width.baseVal.value/before-1);
},{passive:false});
function stay(){for(const part of [names,head])part.setAttribute('transform',`translate(${scroll.scrollLeft})`);}
function light(bar){
  const needs=new Set((bar?bar.dataset.needs:'').split(' ').filter(Boolean));
  for(const other of plot.querySelectorAll('.bar[data-key]')){
    other.classList.toggle('lit',!!bar&&(other===bar||needs.has(other.dataset.key)));
    other.classList.toggle('dim',!!bar&&needs.size>0&&other!==bar&&!needs.has(other.dataset.key));
  }
}
plot.addEventListener('click',event=>{
  const thing=event.target.closest('g'),title=thing&&thing.querySelector('title');
  story.hidden=!title;story.textContent=title?title.textContent:'';
  light(title&&thing.dataset.key?thing:null);
});
range.addEventListener('input',stretch);scroll.addEventListener('scroll',stay);addEventListener('resize',stretch);stretch();
